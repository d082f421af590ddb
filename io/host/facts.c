/*
 * Facts and statistics of the machine, from /proc, /sys, uname and statvfs.
 *
 * Every source is optional: a container or a small board may lack any of them, and a node that
 * does not know its CPU's name still runs work.  Only the data directory must be there.
 */
#include "io/host.h"

#include "io/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/landlock.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { CPU_MHZ_UNKNOWN = 1000, LINES_MAX = 100000 };

/* Calls CB for each line of a file, without its end; stops when CB returns false. */
static void each_line(const char *path, bool (*cb)(void *ctx, char *line), void *ctx)
{
    scoped_file FILE *file = fopen(path, "re");
    scoped_string char *line = NULL;
    size_t size = 0;

    for (size_t i = 0; file != NULL && i < LINES_MAX && getline(&line, &size, file) >= 0; i++) {
        line[strcspn(line, "\n")] = '\0';
        if (!cb(ctx, line))
            break;
    }
}

/* The text behind "NAME<blanks>SEPARATOR<blanks>" if LINE begins so, else NULL. */
static char *value_of(char *line, const char *name, char separator)
{
    if (!text_starts_with(line, name))
        return NULL;
    char *at = line + strlen(name);
    at += strspn(at, " \t");
    if (*at != separator)
        return NULL;
    at++;
    return at + strspn(at, " \t");
}

/* --- system and cpu --- */

/* NAME=value or NAME="value" of os-release(5); values with escapes are not worth a parser. */
static bool read_os_line(void *ctx, char *line)
{
    struct host_facts *facts = ctx;
    char *id = value_of(line, "ID", '='), *version = value_of(line, "VERSION_ID", '=');
    char *value = id != NULL ? id : version;

    if (value == NULL)
        return true;
    if (*value == '"' || *value == '\'') {
        value[strcspn(value + 1, "\"'") + 1] = '\0';
        value++;
    }
    if (id != NULL)
        (void)text_copy(facts->os_name, sizeof(facts->os_name), value); /* cut is as good */
    else
        (void)text_copy(facts->os_version, sizeof(facts->os_version), value); /* the same */
    return true;
}

static bool read_debian_line(void *ctx, char *line)
{
    struct host_facts *facts = ctx;

    if (*line != '\0')
        (void)text_copy(facts->os_version, sizeof(facts->os_version), line); /* cut is as good */
    return false;
}

static bool read_cpu_line(void *ctx, char *line)
{
    struct host_facts *facts = ctx;
    const char *model = value_of(line, "model name", ':'), *mhz = value_of(line, "cpu MHz", ':');

    if (model != NULL && facts->cpu_model[0] == '\0')
        (void)text_copy(facts->cpu_model, sizeof(facts->cpu_model), model); /* cut is as good */
    if (mhz != NULL) {
        double value = strtod(mhz, NULL);
        if (value >= 1 && value < 1e6 && (uint32_t)value > facts->cpu_mhz)
            facts->cpu_mhz = (uint32_t)value;
    }
    return true;
}

static bool read_khz(void *ctx, char *line)
{
    struct host_facts *facts = ctx;
    uint64_t khz;

    if (text_to_u64(line, &khz) && khz >= 1000 && khz < 1000000000u)
        facts->cpu_mhz = (uint32_t)(khz / 1000u);
    return false;
}

static void read_cpu(struct host_facts *facts)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    facts->cpu_cores = cores > 0 ? (uint32_t)cores : 1;
    each_line("/proc/cpuinfo", read_cpu_line, facts);
    /* What the core can reach says more than what it does at the moment. */
    each_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", read_khz, facts);
    if (facts->cpu_mhz == 0)
        facts->cpu_mhz = CPU_MHZ_UNKNOWN;
}

static void read_system(struct host_facts *facts)
{
    struct utsname names;

    if (gethostname(facts->hostname, sizeof(facts->hostname) - 1) != 0)
        facts->hostname[0] = '\0';
    if (uname(&names) == 0) {
        (void)text_copy(facts->kernel_name, sizeof(facts->kernel_name), names.sysname); /* fits */
        (void)text_copy(facts->kernel_version, sizeof(facts->kernel_version), names.release);
        (void)text_copy(facts->arch, sizeof(facts->arch), names.machine);
    }
    each_line("/etc/os-release", read_os_line, facts);
    if (text_equal(facts->os_name, "debian")) /* its os-release lacks the point release */
        each_line("/etc/debian_version", read_debian_line, facts);
}

/* --- network --- */

struct route {
    char interface[IF_NAMESIZE];
    uint64_t metric;
    bool found;
};

static void consider_route(struct route *route, const char *interface, uint64_t metric)
{
    if (route->found && route->metric <= metric)
        return;
    (void)text_copy(route->interface, sizeof(route->interface), interface); /* the kernel's size */
    route->metric = metric;
    route->found = true;
}

/* "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT", numbers in hex except
 * the metric. */
static bool read_route_line(void *ctx, char *line)
{
    char interface[32];
    unsigned long destination, gateway, flags, mask;
    int references, uses, metric;

    if (sscanf(line, "%31s %lx %lx %lx %d %d %d %lx", interface, &destination, &gateway, &flags,
               &references, &uses, &metric, &mask) == 8 &&
        destination == 0 && mask == 0 && (flags & 1u) != 0)
        consider_route(ctx, interface, (uint64_t)metric);
    return true;
}

/* "destination length source length next-hop metric refcount use flags interface", all hex. */
static bool read_route6_line(void *ctx, char *line)
{
    char destination[40], source[40], next[40], interface[32];
    unsigned long length, source_length, metric, references, uses, flags;

    if (sscanf(line, "%39s %lx %39s %lx %39s %lx %lx %lx %lx %31s", destination, &length, source,
               &source_length, next, &metric, &references, &uses, &flags, interface) == 10 &&
        length == 0 && strspn(destination, "0") == 32 && !text_equal(interface, "lo"))
        consider_route(ctx, interface, metric);
    return true;
}

/* The address of FAMILY on INTERFACE that others can reach; false if it has none. */
static bool find_address(const char *interface, int family, char *to, size_t size)
{
    struct ifaddrs *list;
    bool found = false;

    if (getifaddrs(&list) != 0)
        return false;
    for (struct ifaddrs *at = list; at != NULL && !found; at = at->ifa_next) {
        const void *address;

        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != family ||
            !text_equal(at->ifa_name, interface))
            continue;
        if (family == AF_INET) {
            address = &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
        } else {
            const struct in6_addr *six =
                &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
            if (IN6_IS_ADDR_LINKLOCAL(six))
                continue;
            address = six;
        }
        found = inet_ntop(family, address, to, (socklen_t)size) != NULL;
    }
    freeifaddrs(list);
    return found;
}

static void read_network(struct host_facts *facts)
{
    struct route four = {0}, six = {0};
    char *to = facts->ip_address;
    const char *interface = "lo";

    each_line("/proc/net/route", read_route_line, &four);
    each_line("/proc/net/ipv6_route", read_route6_line, &six);
    if (four.found && find_address(four.interface, AF_INET, to, sizeof(facts->ip_address)))
        interface = four.interface;
    else if (six.found && find_address(six.interface, AF_INET6, to, sizeof(facts->ip_address)))
        interface = six.interface;
    else
        (void)text_copy(to, sizeof(facts->ip_address), "127.0.0.1"); /* fits */
    (void)text_copy(facts->network_interface, sizeof(facts->network_interface), interface);
}

/* As Go's IsLinkLocalUnicast. */
static bool is_link_local(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LINKLOCAL(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    const struct sockaddr_in *four = (const void *)address;
    return (ntohl(four->sin_addr.s_addr) >> 16) == 0xa9fe; /* 169.254.0.0/16 */
}

static bool is_internet(const struct sockaddr *address)
{
    return address != NULL && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

/* True if NAME has an address that others than its neighbours can reach. */
static bool has_wider(const struct ifaddrs *list, const char *name)
{
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        if (is_internet(at->ifa_addr) && text_equal(at->ifa_name, name) &&
            !is_link_local(at->ifa_addr))
            return true;
    }
    return false;
}

static bool read_speed(void *ctx, char *line)
{
    uint64_t mbits;

    if (text_to_u64(line, &mbits) && mbits > 0 && mbits <= UINT32_MAX)
        *(uint32_t *)ctx = (uint32_t)mbits;
    return false;
}

/* Of what has no wire the kernel says nothing, or that it is -1. */
static uint32_t speed_of(const char *interface)
{
    char path[64];
    uint32_t mbits = 1000;

    if (text_format(path, sizeof(path), "/sys/class/net/%s/speed", interface))
        each_line(path, read_speed, &mbits);
    return mbits;
}

static void list_family(const struct ifaddrs *list, int family, struct host_address *to, size_t max,
                        size_t *count)
{
    for (const struct ifaddrs *at = list; at != NULL && *count < max; at = at->ifa_next) {
        struct host_address *address = &to[*count];
        const void *bytes;

        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != family ||
            (is_link_local(at->ifa_addr) && has_wider(list, at->ifa_name)))
            continue;
        bytes =
            family == AF_INET
                ? (const void *)&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr
                : (const void *)&((const struct sockaddr_in6 *)(const void *)at->ifa_addr)
                      ->sin6_addr;
        if (inet_ntop(family, bytes, address->ip, sizeof(address->ip)) != NULL &&
            text_copy(address->interface, sizeof(address->interface), at->ifa_name)) {
            address->mbits = speed_of(address->interface);
            (*count)++;
        }
    }
}

size_t host_addresses(struct host_address *ret_addresses, size_t max)
{
    struct ifaddrs *list;
    size_t count = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    list_family(list, AF_INET, ret_addresses, max, &count);
    list_family(list, AF_INET6, ret_addresses, max, &count);
    freeifaddrs(list);
    return count;
}

/* --- memory, disk, cpu time --- */

struct memory {
    uint64_t total, available, free, buffers, cached, reclaimable; /* bytes */
};

static bool read_memory_line(void *ctx, char *line)
{
    struct memory *memory = ctx;
    const struct {
        const char *name;
        uint64_t *to;
    } fields[] = {
        {"MemTotal", &memory->total}, {"MemAvailable", &memory->available},
        {"MemFree", &memory->free},   {"Buffers", &memory->buffers},
        {"Cached", &memory->cached},  {"SReclaimable", &memory->reclaimable},
    };

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        char *value = value_of(line, fields[i].name, ':');
        uint64_t kib;

        if (value == NULL)
            continue;
        value[strcspn(value, " ")] = '\0';
        if (text_to_u64(value, &kib))
            *fields[i].to = kib * 1024u;
    }
    return true;
}

static int read_disk(const char *data_dir, struct statvfs *ret_disk, struct err *err)
{
    if (statvfs(data_dir, ret_disk) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at the file system of %s",
                      data_dir);
    return 0;
}

/* What holds a path. */
struct mount_of {
    uint64_t id;
    struct host_facts *facts;
};

/* "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw" */
static bool read_mount(void *ctx, char *line)
{
    const struct mount_of *mount = ctx;
    char *rest = strstr(line, " - "), *fields[5];
    uint64_t id;

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        fields[i] = strsep(&line, " ");
        if (fields[i] == NULL)
            return true;
    }
    if (rest == NULL || !text_to_u64(fields[0], &id) || id != mount->id)
        return true;
    rest += 3;
    (void)strsep(&rest, " "); /* its type */
    const char *source = strsep(&rest, " ");
    (void)text_copy(mount->facts->disk_device, sizeof(mount->facts->disk_device),
                    source == NULL ? "" : source); /* one that is longer is cut */
    (void)text_copy(mount->facts->disk_mountpoint, sizeof(mount->facts->disk_mountpoint),
                    fields[4]); /* likewise */
    return false;
}

static void read_device(const char *data_dir, struct host_facts *facts)
{
    struct mount_of mount = {.facts = facts};
    struct statx status;

    if (statx(AT_FDCWD, data_dir, 0, STATX_MNT_ID, &status) != 0 ||
        (status.stx_mask & STATX_MNT_ID) == 0)
        return; /* an old kernel does not say */
    mount.id = status.stx_mnt_id;
    each_line("/proc/self/mountinfo", read_mount, &mount);
}

/* "cpu user nice system idle iowait irq softirq steal ...", guest time is part of user; "cpu" is of
 * all, "cpu7" of one, and they come first. */
static bool read_cpu_times(void *ctx, char *line)
{
    struct host_cpu_times *times = ctx;
    unsigned long long at[8] = {0};
    char *numbers = line + strcspn(line, " ");
    struct host_cpu_time *time = &times->all;
    uint64_t number;

    if (!text_starts_with(line, "cpu") || *numbers == '\0')
        return false;
    *numbers++ = '\0';
    if (line[3] != '\0') {
        if (!text_to_u64(line + 3, &number) || number >= HOST_CPUS_MAX)
            return true;
        time = &times->each[number];
    }
    if (sscanf(numbers, "%llu %llu %llu %llu %llu %llu %llu %llu", &at[0], &at[1], &at[2], &at[3],
               &at[4], &at[5], &at[6], &at[7]) < 4)
        return true;
    time->user = at[0] + at[1];
    time->system = at[2] + at[5] + at[6];
    time->idle = at[3] + at[4];
    time->total = time->user + time->system + time->idle + at[7];
    return true;
}

static double percent(uint64_t now, uint64_t before, uint64_t total)
{
    return total == 0 || now <= before ? 0 : 100.0 * (double)(now - before) / (double)total;
}

static struct host_cpu cpu_between(const struct host_cpu_time *since,
                                   const struct host_cpu_time *now)
{
    uint64_t total = now->total > since->total ? now->total - since->total : 0;
    struct host_cpu cpu = {
        .user = percent(now->user, since->user, total),
        .system = percent(now->system, since->system, total),
        .idle = percent(now->idle, since->idle, total),
    };

    cpu.total = total == 0 ? 0 : 100.0 - cpu.idle;
    return cpu;
}

static void read_cpu_stats(struct host_cpu_times *since, struct host_stats *stats)
{
    struct host_cpu_times now = {0};

    each_line("/proc/stat", read_cpu_times, &now);
    stats->cpu = cpu_between(&since->all, &now.all);
    for (unsigned number = 0; number < HOST_CPUS_MAX; number++) {
        if (now.each[number].total == 0)
            continue; /* there is none, or it is off */
        struct host_cpu *cpu = &stats->cpus[stats->cpus_count++];
        *cpu = cpu_between(&since->each[number], &now.each[number]);
        cpu->number = number;
    }
    *since = now;
}

/* --- the two calls --- */

/* --- parts of the machine --- */

static bool read_cores(void *ctx, char *line)
{
    struct host_numa *numa = ctx;

    return !text_copy(numa->cores, sizeof(numa->cores), line);
}

/* "0-1,3": each of them, for which there is room. */
static bool read_numa(void *ctx, char *line)
{
    struct host_facts *facts = ctx;
    char path[80], *rest = line, *range;

    while ((range = strsep(&rest, ",")) != NULL) {
        unsigned first, last;
        int read = sscanf(range, "%u-%u", &first, &last);

        for (unsigned number = first;
             read > 0 && number <= (read == 1 ? first : last) && facts->numa_count < HOST_NUMA_MAX;
             number++) {
            struct host_numa *numa = &facts->numa[facts->numa_count++];

            numa->number = number;
            check(
                text_format(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", number));
            each_line(path, read_cores, numa);
        }
    }
    return false;
}

int host_read_facts(const char *data_dir, struct host_facts *ret_facts, struct err *err)
{
    struct host_facts facts = {0};
    struct memory memory = {0};
    struct statvfs disk;
    int code = read_disk(data_dir, &disk, err);

    if (code != 0)
        return code;

    read_system(&facts);
    read_cpu(&facts);
    read_network(&facts);
    each_line("/sys/devices/system/node/online", read_numa, &facts);
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    facts.landlock = landlock > 0 ? (unsigned)landlock : 0;
    each_line("/proc/meminfo", read_memory_line, &memory);
    facts.memory_bytes = memory.total;
    facts.disk_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    facts.disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    read_device(data_dir, &facts);
    *ret_facts = facts;
    return 0;
}

int host_read_disk(const char *path, struct host_disk *ret_disk, struct err *err)
{
    struct statvfs disk;
    int code = read_disk(path, &disk, err);

    if (code == 0)
        *ret_disk = (struct host_disk){
            .bytes_used = (uint64_t)(disk.f_blocks - disk.f_bfree) * disk.f_frsize,
            .bytes_free = (uint64_t)disk.f_bavail * disk.f_frsize,
            .inodes_used = disk.f_files - disk.f_ffree,
            .inodes_free = disk.f_favail,
        };
    return code;
}

int host_read_stats(const char *data_dir, struct host_cpu_times *since,
                    struct host_stats *ret_stats, struct err *err)
{
    struct host_stats stats = {0};
    struct memory memory = {0};
    struct statvfs disk;
    struct timespec uptime;
    int code = read_disk(data_dir, &disk, err);

    if (code != 0)
        return code;

    each_line("/proc/meminfo", read_memory_line, &memory);
    uint64_t not_used = memory.free + memory.buffers + memory.cached + memory.reclaimable;
    stats.memory_total = memory.total;
    stats.memory_available = memory.available;
    stats.memory_free = memory.free;
    /* As gopsutil counts, whose numbers Nomad's users know: caches are not used memory. */
    stats.memory_used = memory.total > not_used ? memory.total - not_used : 0;

    check(clock_gettime(CLOCK_BOOTTIME, &uptime) == 0);
    stats.uptime_s = (uint64_t)uptime.tv_sec;
    stats.disk_size = (uint64_t)disk.f_blocks * disk.f_frsize;
    stats.disk_used = (uint64_t)(disk.f_blocks - disk.f_bfree) * disk.f_frsize;
    stats.disk_available = (uint64_t)disk.f_bavail * disk.f_frsize;
    stats.inodes = disk.f_files;
    stats.inodes_used = disk.f_files - disk.f_ffree;
    read_cpu_stats(since, &stats);
    *ret_stats = stats;
    return 0;
}

void host_draw_id(char to[UUID_TEXT_SIZE])
{
    uint64_t numbers[2];
    ssize_t got = getrandom(numbers, sizeof(numbers), 0);

    check(got == (ssize_t)sizeof(numbers)); /* never short for so few bytes */
    uuid_format(to, numbers[0], numbers[1]);
}
