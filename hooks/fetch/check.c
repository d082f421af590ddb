/*
 * Asks services whether they are well, for a daemon that reads no word of what they answer.
 *
 * All at once and by one thread: libcurl has the connections, also those of checks that only
 * connect.  Each has one of its own, so that it says whether somebody listens now.  Of an answer no
 * more is read than is shown, and of one that is well nothing.
 *
 * Results are those of nomad v2.0.5 client/serviceregistration/checks/client.go, and for what goes
 * wrong most often so are the words, which are Go's there.
 */
#include "base/native.h"
#include "hooks/fetch/fetch.h"
#include "hooks/services/wire.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REQUESTS_MAX = 10, /* of one check, as Go's client follows redirects */
    RECEIVE_BYTES = 4096,
    WAIT_MS = 60000,
    TRIM_AFTER = 256,
    THREADS_MAX = WIRE_AT_ONCE + 16, /* some, since names are looked up by threads */
    AUTHORITY_SIZE = 512,
    SHOWN_SIZE = 1024, /* of a URL, or of why it failed */
    OK = 200,
    LEAST_FINAL = 200, /* what is below comes before an answer */
    LEAST_FAILURE = 400,
};

/* One check that is asked, and then what came of it, until that is told. */
struct asking {
    struct asking *next, **link; /* of those that are asked, or of those that are done */
    uint64_t number;
    json_t *order;
    CURL *curl;
    struct curl_slist *headers;
    bool is_http;
    bool leads_on;  /* the headers that come say where to ask instead */
    bool is_answer; /* its headers were those of an answer, and not of a redirect */
    bool is_enough; /* no more of it is read */
    char why[CURL_ERROR_SIZE];
    char body[WIRE_OUTPUT_MAX];
    size_t body_length;
    size_t length; /* of: */
    uint8_t answer[WIRE_ANSWER_MAX];
};

struct checker {
    CURLM *multi;
    struct asking *asked, *done, **done_end;
    unsigned since_trim; /* that were asked */
};

static const char *text_of(const struct asking *asking, const char *field)
{
    return fetch_text(asking->order, field);
}

/* --- what is shown --- */

/* As much of FROM as fits, with a sign for what is no UTF-8, as Go's JSON has it. */
static void to_utf8(char *to, size_t size, const char *from, size_t length)
{
    static const char sign[] = "\xef\xbf\xbd";
    size_t done = 0;

    for (size_t i = 0; i < length;) {
        size_t bytes = 1;

        while (bytes < 4 && i + bytes < length && !text_is_utf8(from + i, bytes))
            bytes++;
        bool is_one = text_is_utf8(from + i, bytes);
        size_t written = is_one ? bytes : sizeof(sign) - 1;
        if (done + written >= size)
            break;
        memcpy(to + done, is_one ? from + i : sign, written);
        done += written;
        i += is_one ? bytes : 1;
    }
    to[done] = '\0';
}

/* HOST:PORT of what is asked. */
static void authority_of(const struct asking *asking, char to[AUTHORITY_SIZE])
{
    const char *target = text_of(asking, "target");
    const char *host = strstr(target, "://");

    host = host == NULL ? target : host + 3;
    (void)text_format(to, AUTHORITY_SIZE, "%.*s", (int)strcspn(host, "/?"), host); /* shown */
}

static void connect_failed(const struct asking *asking, char to[SHOWN_SIZE])
{
    char authority[AUTHORITY_SIZE], reason[CURL_ERROR_SIZE];
    long number = 0;

    authority_of(asking, authority);
    (void)curl_easy_getinfo(asking->curl, CURLINFO_OS_ERRNO, &number);
    (void)text_copy(reason, sizeof(reason),
                    number != 0 ? strerror((int)number) : "it did not work"); /* shown */
    reason[0] = (char)tolower((unsigned char)reason[0]);
    (void)text_format(to, SHOWN_SIZE, "dial tcp %s: connect: %s", authority, reason);
}

static void lookup_failed(const struct asking *asking, char to[SHOWN_SIZE])
{
    char authority[AUTHORITY_SIZE];

    authority_of(asking, authority);
    authority[strcspn(authority, ":")] = '\0'; /* what is looked up has no colon */
    (void)text_format(to, SHOWN_SIZE, "dial tcp: lookup %s: no such host", authority);
}

static void timed_out(const struct asking *asking, char to[SHOWN_SIZE])
{
    char authority[AUTHORITY_SIZE];

    authority_of(asking, authority);
    if (asking->is_http)
        (void)text_copy(to, SHOWN_SIZE, "context deadline exceeded"); /* fits, as below */
    else
        (void)text_format(to, SHOWN_SIZE, "dial tcp %s: i/o timeout", authority);
}

/* In Go's words where it has many readers. */
static void say_why(const struct asking *asking, CURLcode result, char to[SHOWN_SIZE])
{
    if (result == CURLE_COULDNT_CONNECT)
        connect_failed(asking, to);
    else if (result == CURLE_COULDNT_RESOLVE_HOST)
        lookup_failed(asking, to);
    else if (result == CURLE_OPERATION_TIMEDOUT)
        timed_out(asking, to);
    else if (result == CURLE_GOT_NOTHING)
        (void)text_copy(to, SHOWN_SIZE, "EOF"); /* fits, as below */
    else if (result == CURLE_TOO_MANY_REDIRECTS)
        (void)text_format(to, SHOWN_SIZE, "stopped after %d redirects", REQUESTS_MAX);
    else
        (void)text_copy(to, SHOWN_SIZE,
                        asking->why[0] != '\0' ? asking->why : curl_easy_strerror(result));
}

/* What Go calls the operation: "Get". */
static void say_failure(const struct asking *asking, CURLcode result, char to[WIRE_OUTPUT_MAX + 1])
{
    const char *method = text_of(asking, "method"), *url = text_of(asking, "target");
    char why[SHOWN_SIZE], operation[32];
    long redirects = 0;

    say_why(asking, result, why);
    if (!asking->is_http) {
        (void)text_copy(to, WIRE_OUTPUT_MAX + 1, why); /* fits, as below */
        return;
    }
    if (asking->is_answer) {
        (void)text_format(to, WIRE_OUTPUT_MAX + 1, "nomad: %s", why);
        return;
    }
    (void)curl_easy_getinfo(asking->curl, CURLINFO_REDIRECT_COUNT, &redirects);
    if (redirects > 0)
        (void)curl_easy_getinfo(asking->curl, CURLINFO_EFFECTIVE_URL, &url);
    (void)text_format(operation, sizeof(operation), "%.31s", method); /* cut is enough */
    for (char *at = operation; *at != '\0'; at++)
        *at = (char)(at == operation ? toupper((unsigned char)*at) : tolower((unsigned char)*at));
    (void)text_format(to, WIRE_OUTPUT_MAX + 1, "nomad: %s \"%.1024s\": %s", operation, url, why);
}

/* --- the end of one --- */

static void drop(struct checker *checker, struct asking *asking)
{
    if (asking->curl != NULL) {
        (void)curl_multi_remove_handle(checker->multi, asking->curl); /* or it never was there */
        curl_easy_cleanup(asking->curl);
    }
    curl_slist_free_all(asking->headers);
    json_decref(asking->order);
    asking->curl = NULL;
    asking->headers = NULL;
    asking->order = NULL;
}

/* Its answer waits to be told. */
static void settle(struct checker *checker, struct asking *asking, const struct wire_answer *answer)
{
    asking->length = wire_answer(asking->answer, answer);
    drop(checker, asking);
    *asking->link = asking->next;
    if (asking->next != NULL)
        asking->next->link = asking->link;
    asking->next = NULL;
    asking->link = checker->done_end;
    *checker->done_end = asking;
    checker->done_end = &asking->next;
}

static void finish(struct checker *checker, struct asking *asking, CURLcode result)
{
    char said[WIRE_OUTPUT_MAX + 1], output[WIRE_OUTPUT_MAX + 1];
    struct wire_answer answer = {.number = asking->number, .output = output};
    bool is_whole = result == CURLE_OK || asking->is_enough;
    long code = 0;

    if (asking->is_http && (is_whole || asking->is_answer))
        (void)curl_easy_getinfo(asking->curl, CURLINFO_RESPONSE_CODE, &code);
    answer.code = (uint16_t)(code > 0 && code < 1000 ? code : 0);
    answer.success = asking->is_http ? answer.code > 0 && answer.code < LEAST_FAILURE : is_whole;
    if (!asking->is_http && is_whole)
        (void)text_copy(output, sizeof(output), "nomad: tcp ok"); /* fits, as below */
    else if (answer.code == OK)
        (void)text_copy(output, sizeof(output), "nomad: http ok");
    else if (is_whole)
        to_utf8(output, sizeof(output), asking->body, asking->body_length);
    else {
        say_failure(asking, result, said);
        to_utf8(output, sizeof(output), said, strlen(said));
    }
    settle(checker, asking, &answer);
}

static void fail(struct checker *checker, struct asking *asking, const char *why)
{
    const struct wire_answer answer = {.number = asking->number, .output = why};

    settle(checker, asking, &answer);
}

/* --- what comes from whom is asked --- */

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    static const char location[] = "location:";
    struct asking *asking = ctx;
    size_t length = size * count;
    long code = 0;

    if (length >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        asking->leads_on = asking->is_answer = false;
    if (length >= sizeof(location) && strncasecmp(bytes, location, sizeof(location) - 1) == 0)
        asking->leads_on = true;
    if (length > 2 || length == 0 || bytes[length - 1] != '\n')
        return length;
    (void)curl_easy_getinfo(asking->curl, CURLINFO_RESPONSE_CODE, &code);
    asking->is_answer =
        code >= LEAST_FINAL && !(asking->leads_on && code >= 300 && code < LEAST_FAILURE);
    asking->is_enough = asking->is_answer && code == OK;
    return asking->is_enough ? 0 : length;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct asking *asking = ctx;
    size_t length = size * count, room = sizeof(asking->body) - asking->body_length;

    memcpy(asking->body + asking->body_length, bytes, length < room ? length : room);
    asking->body_length += length < room ? length : room;
    asking->is_enough = length >= room;
    return asking->is_enough ? 0 : length;
}

/* --- what is asked --- */

static void add(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    check(longer != NULL);
    *list = longer;
}

static void add_header(struct asking *asking, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 3;
    char *line = malloc(size);

    check(line != NULL);
    /* An empty one is to be sent as such. */
    (void)text_format(line, size, *value == '\0' ? "%s;" : "%s: %s", name, value); /* made to fit */
    add(&asking->headers, line);
    free(line);
}

static void set_headers(struct asking *asking)
{
    json_t *header;
    size_t i;

    add(&asking->headers, "Expect:");       /* libcurl's own, which nobody asked for */
    add(&asking->headers, "Content-Type:"); /* the same; one that is asked for comes after it */
    json_array_foreach(json_object_get(asking->order, "headers"), i, header)
    {
        const char *name = json_string_value(json_array_get(header, 0));
        const char *value = json_string_value(json_array_get(header, 1));

        add_header(asking, name, value);
    }
    (void)curl_easy_setopt(asking->curl, CURLOPT_HTTPHEADER, asking->headers);
}

static void set_method(const struct asking *asking)
{
    const char *method = text_of(asking, "method"), *body = text_of(asking, "body");

    if (*body != '\0' || text_equal(method, "POST")) {
        (void)curl_easy_setopt(asking->curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
        (void)curl_easy_setopt(asking->curl, CURLOPT_POSTFIELDS, body);
    }
    if (strcasecmp(method, "HEAD") == 0)
        (void)curl_easy_setopt(asking->curl, CURLOPT_NOBODY, 1L);
    else if (!text_equal(method, *body != '\0' ? "POST" : "GET") && !text_equal(method, "POST"))
        (void)curl_easy_setopt(asking->curl, CURLOPT_CUSTOMREQUEST, method);
}

static void set_http(struct asking *asking)
{
    (void)curl_easy_setopt(asking->curl, CURLOPT_URL, text_of(asking, "target"));
    (void)curl_easy_setopt(asking->curl, CURLOPT_PATH_AS_IS, 1L); /* it was resolved */
    (void)curl_easy_setopt(asking->curl, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(asking->curl, CURLOPT_MAXREDIRS, (long)REQUESTS_MAX - 1);
    (void)curl_easy_setopt(asking->curl, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(asking->curl, CURLOPT_HEADERDATA, asking);
    (void)curl_easy_setopt(asking->curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(asking->curl, CURLOPT_WRITEDATA, asking);
    set_method(asking);
    set_headers(asking);
    if (json_is_true(json_object_get(asking->order, "insecure"))) {
        (void)curl_easy_setopt(asking->curl, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(asking->curl, CURLOPT_SSL_VERIFYHOST, 0L);
        (void)curl_easy_setopt(asking->curl, CURLOPT_CAINFO, NULL); /* not to be read in vain */
        (void)curl_easy_setopt(asking->curl, CURLOPT_CAPATH, NULL);
    }
}

static void set_tcp(const struct asking *asking)
{
    char url[SHOWN_SIZE];

    (void)text_format(url, sizeof(url), "http://%s", text_of(asking, "target")); /* fits */
    (void)curl_easy_setopt(asking->curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(asking->curl, CURLOPT_CONNECT_ONLY, 1L);
}

/* All options are known. */
static void set_options(struct asking *asking)
{
    long timeout_ms = (long)json_integer_value(json_object_get(asking->order, "timeout_ms"));

    (void)curl_easy_setopt(asking->curl, CURLOPT_PRIVATE, asking);
    (void)curl_easy_setopt(asking->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(asking->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(asking->curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(asking->curl, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl_easy_setopt(asking->curl, CURLOPT_FORBID_REUSE, 1L);
    (void)curl_easy_setopt(asking->curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    (void)curl_easy_setopt(asking->curl, CURLOPT_TIMEOUT_MS, timeout_ms > 0 ? timeout_ms : 1);
    (void)curl_easy_setopt(asking->curl, CURLOPT_CONNECTTIMEOUT_MS,
                           timeout_ms > 0 ? timeout_ms : 1);
    (void)curl_easy_setopt(asking->curl, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    (void)curl_easy_setopt(asking->curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(asking->curl, CURLOPT_USERAGENT, "cairn");
    (void)curl_easy_setopt(asking->curl, CURLOPT_ERRORBUFFER, asking->why);
    if (asking->is_http)
        set_http(asking);
    else
        set_tcp(asking);
}

static void ask(struct checker *checker, uint64_t number, const char *text, size_t length)
{
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    checker->since_trim++;
    asking->number = number;
    asking->next = checker->asked;
    asking->link = &checker->asked;
    if (asking->next != NULL)
        asking->next->link = &asking->next;
    checker->asked = asking;
    asking->order = json_loadb(text, length, 0, NULL);
    asking->is_http = json_object_get(asking->order, "method") != NULL;
    asking->curl = asking->order == NULL ? NULL : curl_easy_init();
    if (asking->curl == NULL) {
        fail(checker, asking, "nomad: it cannot be asked");
        return;
    }
    set_options(asking);
    if (curl_multi_add_handle(checker->multi, asking->curl) != CURLM_OK)
        fail(checker, asking, "nomad: it cannot be asked");
}

static void cancel(struct checker *checker, uint64_t number)
{
    for (struct asking *asking = checker->asked; asking != NULL; asking = asking->next) {
        if (asking->number == number) {
            fail(checker, asking, "nomad: nobody waits for it any more");
            return;
        }
    }
}

/* --- with the daemon --- */

/* False: it is gone. */
static bool hear(struct checker *checker)
{
    static char message[WIRE_ORDER_MAX];

    for (;;) {
        ssize_t length = recv(WIRE_SOCKET, message, sizeof(message), MSG_DONTWAIT);

        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN;
        if (length < WIRE_NUMBER)
            return false;
        uint64_t number = wire_number_read((const uint8_t *)message);
        if (length == WIRE_NUMBER)
            cancel(checker, number);
        else
            ask(checker, number, message + WIRE_NUMBER, (size_t)length - WIRE_NUMBER);
    }
}

/* As much as it takes now. */
static void tell(struct checker *checker)
{
    while (checker->done != NULL) {
        struct asking *asking = checker->done;

        if (send(WIRE_SOCKET, asking->answer, asking->length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return; /* it takes more later, or is gone */
        checker->done = asking->next;
        if (asking->next == NULL)
            checker->done_end = &checker->done;
        else
            asking->next->link = &checker->done;
        free(asking);
    }
}

static void finish_all(struct checker *checker)
{
    int running, left;
    CURLMsg *message;

    (void)curl_multi_perform(checker->multi, &running); /* each tells by itself what went wrong */
    while ((message = curl_multi_info_read(checker->multi, &left)) != NULL) {
        struct asking *asking = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &asking);
        finish(checker, asking, result);
    }
}

/* What many at once took is given back once they are over. */
static void trim(struct checker *checker)
{
    if (checker->asked != NULL || checker->done != NULL || checker->since_trim < TRIM_AFTER)
        return;
    checker->since_trim = 0;
    (void)malloc_trim(0); /* or there is nothing to give */
}

/* --- walls --- */

static bool limit(enum __rlimit_resource what, rlim_t most)
{
    const struct rlimit limits = {most, most};

    return setrlimit(what, &limits) == 0;
}

/* Calls that fail from here on: those that make processes of programs, or meddle with others. */
/* clang-format off */
#define DENIED(X)                                                                                  \
    X(execve) X(execveat) X(ptrace) X(process_vm_readv) X(process_vm_writev) X(unshare) X(setns)   \
    X(mount) X(bpf) X(userfaultfd) X(io_uring_setup) X(perf_event_open) X(keyctl) X(add_key)       \
    X(request_key) X(pidfd_getfd)
/* clang-format on */
#ifdef SYS_fork
#define DENIED_HERE(X) X(fork) X(vfork)
#else
#define DENIED_HERE(X)
#endif

/* A thread is made by the old call, whose flags can be seen; who asks for the new one learns that
 * there is none. */
static bool deny_calls(void)
{
#define X(name)                                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_FROM, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        DENIED(X) DENIED_HERE(X) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
#undef X
    struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/* Whoever takes this process over is a user whom nobody else is, and makes no other process. */
static bool lay_down(uid_t own)
{
    bool is_alone = false;

    if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    if (geteuid() == 0) {
        is_alone = fetch_be(own, own);
        if ((!is_alone && !fetch_be(FETCH_NOBODY, FETCH_NOBODY)) || fetch_keep_capabilities(0) != 0)
            return false;
    }
    if (is_alone && !limit(RLIMIT_NPROC, THREADS_MAX))
        return false;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && deny_calls();
}

int fetch_check(uid_t own)
{
    struct checker checker = {.done_end = &checker.done};
    struct curl_waitfd daemon = {.fd = WIRE_SOCKET};
    struct pollfd now = {.fd = WIRE_SOCKET};

    if (!lay_down(own))
        return FETCH_EXIT_USAGE;
    /* A change of the user ends what was said of it before. */
    check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (poll(&now, 1, 0) != 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return FETCH_EXIT_USAGE;
    checker.multi = curl_multi_init();
    check(checker.multi != NULL);
    while (hear(&checker)) {
        finish_all(&checker);
        tell(&checker);
        trim(&checker);
        daemon.events = (short)(CURL_WAIT_POLLIN | (checker.done != NULL ? CURL_WAIT_POLLOUT : 0));
        (void)curl_multi_poll(checker.multi, &daemon, 1, WAIT_MS,
                              NULL); /* whatever it waited for */
    }
    return 0;
}
