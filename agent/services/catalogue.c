#include "agent/services/catalogue.h"

#include "agent/parts.h"
#include "base/list.h"
#include "fsm/policy.h"
#include "io/log.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

/* What one alloc offers, from when its tasks may start until it is told to end. */
struct offer {
    char alloc[UUID_TEXT_SIZE]; /* found by it */
    struct catalogue *catalogue;
    struct alloc_spec *spec;         /* owned; NULL: nothing is made yet */
    struct hooks_services *services; /* of that spec */
    struct hooks_checks *checks;
    uint64_t version;           /* of the job that it was made by */
    json_t *network;            /* where it was by then, NULL: not known, or as the host */
    bool canary;                /* and that it was one */
    bool is_old;                /* the alloc goes by a newer version */
    bool is_broken;             /* it cannot be made, as was said */
    bool is_dirty;              /* listed among those to be looked at */
    uint64_t offered;           /* bits of services that are registered */
    struct checked found, told; /* what its checks have found, and what of it its machine knows */
    struct check_count counts[SPEC_CHECKS_MAX];
    UT_hash_handle hh;
};

struct catalogue {
    struct parts *parts;
    struct {
        catalogue_news *news; /* NULL: nobody wants to hear them */
        void *ctx;
    } listeners[CATALOGUE_LISTENERS];
    void (*changed)(void *ctx, const char *namespace); /* NULL: nobody wants to know */
    void *changed_ctx;
    struct offer *offers; /* by alloc */
    /* What was listed last, until something of it changes: hundreds of templates may ask at once.
     */
    json_t *listed;
    char listed_namespace[SPEC_NAMESPACE_SIZE];
    struct {
        struct offer **items;
        size_t count, size;
    } dirty;
};

_Static_assert((int)SPEC_SERVICES_MAX <= 64, "services are bits of a word");

struct catalogue *catalogue_new(struct parts *parts)
{
    struct catalogue *catalogue = calloc(1, sizeof(*catalogue));

    check(catalogue != NULL);
    catalogue->parts = parts;
    return catalogue;
}

/* --- offers --- */

static struct offer *find(const struct catalogue *catalogue, const char *alloc)
{
    struct offer *offer;

    HASH_FIND_STR(catalogue->offers, alloc, offer);
    return offer;
}

static void unmake(struct offer *offer)
{
    hooks_checks_end(offer->checks);
    hooks_services_free(offer->services);
    alloc_spec_free(offer->spec);
    json_decref(offer->network);
    offer->network = NULL;
    offer->checks = NULL;
    offer->services = NULL;
    offer->spec = NULL;
}

static void drop(struct offer *offer)
{
    unmake(offer);
    HASH_DEL(offer->catalogue->offers, offer);
    free(offer);
}

void catalogue_free(struct catalogue *catalogue)
{
    struct offer *offer, *next;

    if (catalogue == NULL)
        return;
    HASH_ITER(hh, catalogue->offers, offer, next)
    {
        drop(offer);
    }
    json_decref(catalogue->listed);
    free(catalogue->dirty.items);
    free(catalogue);
}

/* --- what is noted --- */

static void look_at(struct catalogue *catalogue, struct offer *offer)
{
    if (offer->is_dirty)
        return;
    offer->is_dirty = true;
    *list_more(&catalogue->dirty) = offer;
}

static void note_alloc(struct catalogue *catalogue, const char *id)
{
    const struct alloc *alloc = core_alloc(catalogue->parts->core, id);
    struct offer *offer = find(catalogue, id);

    if (offer == NULL && alloc != NULL && policy_group_offers(alloc) &&
        (alloc->assign.hooks_prerun & 1u << ALLOC_HOOK_SERVICES) != 0) {
        offer = calloc(1, sizeof(*offer));
        check(offer != NULL);
        (void)text_copy(offer->alloc, sizeof(offer->alloc), id); /* a UUID */
        offer->catalogue = catalogue;
        HASH_ADD_STR(catalogue->offers, alloc, offer);
    }
    if (offer != NULL)
        look_at(catalogue, offer);
}

void catalogue_note(struct catalogue *catalogue, const struct journal_event *event)
{
    if (event->id.kind == MACHINE_ALLOC) {
        struct offer *offer = find(catalogue, event->id.text);
        if (offer != NULL && event->event.kind == AE_UPDATE)
            offer->is_old = true;
        note_alloc(catalogue, event->id.text);
    } else if (event->id.kind == MACHINE_TASK && catalogue->offers != NULL) {
        struct machine_id owner = machine_id_owner(&event->id);
        struct offer *offer = find(catalogue, owner.text);
        if (offer != NULL)
            look_at(catalogue, offer);
    }
}

/* --- news --- */

static struct catalogue_entry entry_of(const struct offer *offer,
                                       const struct hooks_service *service)
{
    const struct alloc_stub *stub = specs_stub(offer->catalogue->parts->specs, offer->alloc);
    struct catalogue_entry entry = {.alloc = offer->spec, .service = service};

    if (stub != NULL) {
        entry.create_index = stub->create_index;
        entry.modify_index = stub->modify_index != 0 ? stub->modify_index : stub->create_index;
    }
    return entry;
}

void catalogue_listen(struct catalogue *catalogue, enum catalogue_listener who,
                      catalogue_news *news, void *ctx)
{
    catalogue->listeners[who].news = news;
    catalogue->listeners[who].ctx = ctx;
}

void catalogue_on_change(struct catalogue *catalogue,
                         void (*changed)(void *ctx, const char *namespace), void *ctx)
{
    catalogue->changed = changed;
    catalogue->changed_ctx = ctx;
}

static void tell_news(const struct offer *offer, const struct hooks_service *service,
                      bool registered)
{
    const struct catalogue *catalogue = offer->catalogue;
    bool of_consul = service->spec->provider == PROVIDER_CONSUL;

    for (size_t i = 0; i < COUNT_OF(catalogue->listeners); i++) {
        if (catalogue->listeners[i].news == NULL || of_consul != (i == CATALOGUE_CONSUL))
            continue;
        struct catalogue_entry entry = entry_of(offer, service);
        catalogue->listeners[i].news(catalogue->listeners[i].ctx, registered, &entry);
    }
}

static void tell_change(struct catalogue *catalogue, const char *namespace)
{
    json_decref(catalogue->listed);
    catalogue->listed = NULL;
    if (catalogue->changed != NULL)
        catalogue->changed(catalogue->changed_ctx, namespace);
}

/* --- checks --- */

static struct hooks_check *find_check(struct hooks_services *services, const char *id)
{
    for (size_t i = 0; services != NULL && i < services->count; i++) {
        const struct hooks_service *service = &services->items[i];
        for (size_t j = 0; j < service->checks_count; j++) {
            if (text_equal(service->checks[j].id, id))
                return &service->checks[j];
        }
    }
    return NULL;
}

/* What is known of TO, which was just made: what BEFORE found, or else what the record says. */
static void know_check(struct offer *offer, const struct alloc *alloc,
                       struct hooks_services *before, struct hooks_check *to)
{
    const struct hooks_check *same = find_check(before, to->id);
    uint64_t bit = (uint64_t)1 << to->number;

    if (same != NULL) {
        to->status = same->status;
        to->code = same->code;
        to->unix_ns = same->unix_ns;
        hooks_check_say(to, same->output);
    } else if ((alloc->checks_ran & bit) != 0) {
        to->status = (alloc->checks_pass & bit) != 0 ? CHECK_SUCCESS : CHECK_FAILURE;
        hooks_check_say(to, "nomad: found before the agent was restarted");
    }
    if (to->status != CHECK_PENDING)
        offer->found.ran |= bit;
    if (to->status == CHECK_SUCCESS)
        offer->found.pass |= bit;
}

/* Tells the alloc what its checks have found, if it does not know. */
static void tell_found(struct offer *offer)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, offer->alloc);

    if (offer->told.ran == offer->found.ran && offer->told.pass == offer->found.pass)
        return;
    offer->told = offer->found;
    core_tell(offer->catalogue->parts->core, &id, AE_CHECKED, &offer->found);
}

static void begin_grace(struct offer *offer, const struct hooks_service *service)
{
    uint64_t now_ms = life_now_ms(offer->catalogue->parts->life);

    for (size_t i = 0; i < service->checks_count; i++) {
        const struct hooks_check *check = &service->checks[i];
        offer->counts[check->number] =
            (struct check_count){.grace_until_ms = now_ms + check->spec->restart_grace_ms};
    }
}

static void restart(struct offer *offer, const struct hooks_service *service, const char *check)
{
    struct core *core = offer->catalogue->parts->core;
    const struct alloc *alloc = core_alloc(core, offer->alloc);
    struct kill_order order = {.event = TASK_EVENT_RESTART_SIGNALED};

    (void)text_format(order.text, sizeof(order.text), "healthcheck: check \"%s\" unhealthy",
                      check); /* cut if too long */
    for (uint32_t i = 0; alloc != NULL && i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct machine_id id = machine_id_join(MACHINE_TASK, offer->alloc, member->name);
        if (policy_check_is_of(member, service->spec->task) && core_find(core, &id) != NULL)
            core_tell(core, &id, TE_UNWELL, &order);
    }
    log_info("services", "restarts what fails a check alloc=%s service=%s check=%s", offer->alloc,
             log_value(service->name), log_value(check));
    begin_grace(offer, service);
}

static bool is_offered(const struct offer *offer, const struct hooks_service *service)
{
    size_t number = (size_t)(service - offer->services->items);

    return (offer->offered >> number & 1) != 0;
}

/* What it has found is known now, and whether its alloc is told. */
static void find_out(struct offer *offer, const struct hooks_check *check)
{
    uint64_t bit = (uint64_t)1 << check->number;

    offer->found.ran |= bit;
    offer->found.pass =
        check->status == CHECK_SUCCESS ? offer->found.pass | bit : offer->found.pass & ~bit;
    if (life_degraded(offer->catalogue->parts->life) == NULL)
        tell_found(offer); /* else it is found again */
}

static void checked(void *ctx, const struct hooks_service *service, const struct hooks_check *check)
{
    struct offer *offer = ctx;
    struct parts *parts = offer->catalogue->parts;

    find_out(offer, check);
    if (life_degraded(parts->life) == NULL && is_offered(offer, service) &&
        policy_check_restarts(&offer->counts[check->number], check->spec->restart_limit,
                              check->status == CHECK_SUCCESS, life_now_ms(parts->life)))
        restart(offer, service, check->name);
}

static struct hooks_check *find_of_consul(struct offer *offer, const char *id,
                                          const struct hooks_service **ret_service)
{
    for (size_t i = 0; offer->services != NULL && i < offer->services->count; i++) {
        struct hooks_service *service = &offer->services->items[i];
        for (size_t j = 0; j < service->checks_count; j++) {
            if (service->spec->provider == PROVIDER_CONSUL &&
                text_equal(service->checks[j].id, id)) {
                *ret_service = service;
                return &service->checks[j];
            }
        }
    }
    return NULL;
}

void catalogue_checked(struct catalogue *catalogue, const char *alloc, const char *id,
                       enum consul_status status)
{
    struct offer *offer = find(catalogue, alloc);
    const struct hooks_service *service;
    struct hooks_check *found = offer == NULL ? NULL : find_of_consul(offer, id, &service);

    if (found == NULL)
        return;
    const struct spec_check *spec = found->spec;
    found->status =
        policy_consul_passes(status, spec->warnings_pass) ? CHECK_SUCCESS : CHECK_FAILURE;
    find_out(offer, found);
    if (life_degraded(catalogue->parts->life) == NULL && is_offered(offer, service) &&
        policy_consul_restarts(&offer->counts[found->number], spec->restart_limit,
                               spec->interval_ms,
                               policy_consul_passes(status, spec->restart_ignores_warnings),
                               life_now_ms(catalogue->parts->life)))
        restart(offer, service, found->name);
}

/* --- making --- */

/* The network that tasks of ALLOC have found, one that runs before others; a new reference, NULL:
 * none yet. */
static json_t *network_of(const struct core *core, const char *id, const struct alloc *alloc)
{
    json_t *found = NULL;

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        const struct task *task =
            member->kind == MEMBER_TASK ? core_task(core, id, member->name) : NULL;
        bool is_better = task != NULL && (found == NULL || task->run_state == TASK_RUN_RUNNING);
        json_t *status =
            is_better ? hooks_network_status(task->results, task->results_bytes) : NULL;
        if (status == NULL)
            continue;
        json_decref(found);
        found = status;
    }
    return found;
}

/* SPEC says it of an alloc that servers have made. */
static bool is_canary(const struct parts *parts, const char *id, const struct alloc *alloc,
                      const struct alloc_spec *spec)
{
    const struct alone_job *job =
        alone_find(parts->alone, alloc->assign.namespace, alloc->assign.job_id);

    return spec->canary || (job != NULL && alone_is_canary(job, alloc->assign.group, id));
}

/* True if what was made is not what would be made now. */
static bool is_outdated(const struct offer *offer, const struct alloc *alloc, json_t *network)
{
    const struct parts *parts = offer->catalogue->parts;

    if (offer->is_old || offer->version != alloc->assign.job_version)
        return true;
    if (offer->spec == NULL)
        return !offer->is_broken;
    return (network != NULL && !json_equal(offer->network, network)) ||
           offer->canary != is_canary(parts, offer->alloc, alloc, offer->spec);
}

static int make(struct offer *offer, const struct alloc *alloc, json_t *network, struct err *err)
{
    struct parts *parts = offer->catalogue->parts;

    offer->version = alloc->assign.job_version;
    offer->is_old = false;
    offer->network = json_incref(network);
    int code = specs_read(parts->specs, offer->alloc, &offer->spec, err);
    if (code != 0)
        return code;
    offer->canary = is_canary(parts, offer->alloc, alloc, offer->spec);
    return hooks_services_make(parts->hooks, offer->spec, offer->canary, network, &offer->services,
                               err);
}

static bool same_tags(const struct spec_texts *a, const struct spec_texts *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = text_equal(a->items[i], b->items[i]);
    return same;
}

static const struct hooks_service *find_service(const struct hooks_services *services,
                                                const char *id)
{
    for (size_t i = 0; services != NULL && i < services->count; i++) {
        if (text_equal(services->items[i].id, id))
            return &services->items[i];
    }
    return NULL;
}

/* What was registered BEFORE, and is as it was, stays so; what is none any more is told. */
static void keep_offered(struct offer *offer, const struct offer *before)
{
    for (size_t i = 0; before->services != NULL && i < before->services->count; i++) {
        const struct hooks_service *was = &before->services->items[i];
        const struct hooks_service *is = find_service(offer->services, was->id);
        if (!is_offered(before, was))
            continue;
        if (is == NULL) {
            tell_news(before, was, false);
        } else if (text_equal(is->address, was->address) && is->port == was->port &&
                   same_tags(&is->tags, &was->tags) &&
                   (is->registration == was->registration ||
                    json_equal(is->registration, was->registration))) {
            offer->offered |= (uint64_t)1 << (is - offer->services->items);
            begin_grace(offer, is);
        }
    }
}

/* Made anew, what checks that are the same have found is kept. */
static void remake(struct offer *offer, const struct alloc *alloc, json_t *network)
{
    struct offer before = *offer;
    struct err err = {0};

    hooks_checks_end(offer->checks);
    before.checks = offer->checks = NULL;
    offer->spec = NULL;
    offer->services = NULL;
    offer->offered = 0;
    offer->found = (struct checked){0};
    offer->told = (struct checked){alloc->checks_ran, alloc->checks_pass};
    offer->network = NULL;
    offer->is_broken = make(offer, alloc, network, &err) != 0;
    if (offer->is_broken) {
        log_warn("services", "nothing of it can be found alloc=%s error=%s", offer->alloc,
                 log_value(err.text));
        unmake(offer);
    }
    for (size_t i = 0; offer->services != NULL && i < offer->services->count; i++) {
        struct hooks_service *service = &offer->services->items[i];
        for (size_t j = 0; j < service->checks_count; j++)
            know_check(offer, alloc, before.services, &service->checks[j]);
    }
    if (offer->services != NULL)
        hooks_checks_begin(offer->catalogue->parts->hooks, offer->services, checked, offer,
                           &offer->checks);
    keep_offered(offer, &before);
    if (before.offered != offer->offered)
        tell_change(offer->catalogue, alloc->assign.namespace);
    unmake(&before);
    tell_found(offer);
}

/* --- who is registered --- */

static bool offers(const struct offer *offer, const struct alloc *alloc,
                   const struct hooks_service *service)
{
    const char *name = service->spec->task;

    if (service->spec->provider == PROVIDER_CONSUL && service->registration == NULL)
        return false; /* its address is not known yet */
    if (name[0] == '\0')
        return true;
    const struct task *task = core_task(offer->catalogue->parts->core, offer->alloc, name);
    return task != NULL && policy_task_offers(alloc, task);
}

/* True if something of it is registered that was not, or not any more. */
static bool register_all(struct offer *offer, const struct alloc *alloc)
{
    uint64_t before = offer->offered;

    offer->offered = 0;
    for (size_t i = 0; offer->services != NULL && i < offer->services->count; i++) {
        const struct hooks_service *service = &offer->services->items[i];
        uint64_t bit = (uint64_t)1 << i;
        bool is = offers(offer, alloc, service), was = (before & bit) != 0;
        if (is)
            offer->offered |= bit;
        if (is && !was)
            begin_grace(offer, service);
        if (is != was)
            tell_news(offer, service, is);
    }
    return offer->offered != before;
}

static void end(struct offer *offer)
{
    for (size_t i = 0; offer->services != NULL && i < offer->services->count; i++) {
        if (is_offered(offer, &offer->services->items[i]))
            tell_news(offer, &offer->services->items[i], false);
    }
    if (offer->offered != 0)
        tell_change(offer->catalogue, offer->spec->namespace);
    drop(offer);
}

static void settle(struct offer *offer)
{
    const struct core *core = offer->catalogue->parts->core;
    const struct alloc *alloc = core_alloc(core, offer->alloc);

    if (alloc == NULL || !policy_group_offers(alloc)) {
        end(offer);
        return;
    }
    json_t *network = network_of(core, offer->alloc, alloc);
    if (is_outdated(offer, alloc, network))
        remake(offer, alloc, network);
    json_decref(network);
    if (register_all(offer, alloc))
        tell_change(offer->catalogue, alloc->assign.namespace);
}

void catalogue_settle(struct catalogue *catalogue)
{
    for (size_t i = 0; i < catalogue->dirty.count; i++) {
        struct offer *offer = catalogue->dirty.items[i];
        offer->is_dirty = false;
        settle(offer);
    }
    catalogue->dirty.count = 0;
    list_release(&catalogue->dirty);
}

/* --- reading --- */

struct found {
    const struct offer *offer;
    const struct hooks_service *service;
};

static int by_name_and_id(const void *a, const void *b)
{
    const struct hooks_service *one = ((const struct found *)a)->service;
    const struct hooks_service *other = ((const struct found *)b)->service;
    int order = strcmp(one->name, other->name);

    return order != 0 ? order : strcmp(one->id, other->id);
}

/* Those of promoted canaries have other tags: nothing happens to their machines. */
static void renew(struct catalogue *catalogue)
{
    struct offer *offer, *next;

    HASH_ITER(hh, catalogue->offers, offer, next)
    {
        if (!offer->is_dirty)
            settle(offer);
    }
}

static bool watches_consul(const struct offer *offer)
{
    const struct alloc *alloc = core_alloc(offer->catalogue->parts->core, offer->alloc);
    bool deployed = alloc != NULL && alloc->assign.watched && alloc->health == HEALTH_UNKNOWN;

    for (size_t i = 0; offer->services != NULL && i < offer->services->count; i++) {
        const struct hooks_service *service = &offer->services->items[i];
        for (size_t j = 0; j < service->checks_count; j++) {
            if (service->spec->provider == PROVIDER_CONSUL && is_offered(offer, service) &&
                (deployed || service->checks[j].spec->restart_limit > 0))
                return true;
        }
    }
    return false;
}

bool catalogue_watches_consul(struct catalogue *catalogue)
{
    bool watches = false;

    catalogue_settle(catalogue);
    renew(catalogue);
    for (const struct offer *offer = catalogue->offers; offer != NULL && !watches;
         offer = offer->hh.next)
        watches = watches_consul(offer);
    return watches;
}

void catalogue_each(struct catalogue *catalogue, const char *namespace, catalogue_each_cb *cb,
                    void *ctx)
{
    struct {
        struct found *items;
        size_t count, size;
    } all = {0};
    struct offer *offer, *next;

    catalogue_settle(catalogue); /* whoever asks may be of an alloc that has just begun */
    renew(catalogue);
    HASH_ITER(hh, catalogue->offers, offer, next)
    {
        if (offer->spec == NULL ||
            (namespace != NULL && !text_equal(offer->spec->namespace, namespace)))
            continue;
        for (size_t i = 0; i < offer->services->count; i++) {
            if (is_offered(offer, &offer->services->items[i]) &&
                offer->services->items[i].spec->provider == PROVIDER_NOMAD)
                *list_more(&all) = (struct found){offer, &offer->services->items[i]};
        }
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof(all.items[0]), by_name_and_id);
    for (size_t i = 0; i < all.count; i++) {
        struct catalogue_entry entry = entry_of(all.items[i].offer, all.items[i].service);
        cb(ctx, &entry);
    }
    free(all.items);
}

const struct hooks_services *catalogue_of_alloc(const struct catalogue *catalogue,
                                                const char *alloc)
{
    const struct offer *offer = find(catalogue, alloc);

    return offer == NULL ? NULL : offer->services;
}

/* --- as JSON --- */

static json_t *tags_of(const struct hooks_service *service)
{
    json_t *tags = json_array();

    check(tags != NULL);
    for (size_t i = 0; i < service->tags.count; i++)
        check(json_array_append_new(tags, json_string(service->tags.items[i])) == 0);
    return tags;
}

json_t *catalogue_registration(const struct catalogue *catalogue,
                               const struct catalogue_entry *entry)
{
    const struct hooks_service *service = entry->service;
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:i, s:I, s:I}", "ID", service->id,
                  "ServiceName", service->name, "Namespace", entry->alloc->namespace, "NodeID",
                  catalogue->parts->node.known.id, "Datacenter", entry->alloc->datacenter, "JobID",
                  entry->alloc->job_id, "AllocID", entry->alloc->id, "Tags", tags_of(service),
                  "Address", service->address, "Port", service->port, "CreateIndex",
                  (json_int_t)entry->create_index, "ModifyIndex", (json_int_t)entry->modify_index);

    check(made != NULL);
    return made;
}

struct listing {
    const struct catalogue *catalogue;
    json_t *list;
};

static void list_one(void *ctx, const struct catalogue_entry *entry)
{
    struct listing *listing = ctx;

    check(json_array_append_new(listing->list, catalogue_registration(listing->catalogue, entry)) ==
          0);
}

json_t *catalogue_list(struct catalogue *catalogue, const char *namespace)
{
    struct listing listing = {catalogue, NULL};

    catalogue_settle(catalogue);
    if (catalogue->listed != NULL && text_equal(catalogue->listed_namespace, namespace))
        return json_incref(catalogue->listed);
    listing.list = json_array();
    check(listing.list != NULL);
    catalogue_each(catalogue, namespace, list_one, &listing);
    json_decref(catalogue->listed);
    (void)text_copy(catalogue->listed_namespace, sizeof(catalogue->listed_namespace),
                    namespace); /* same size */
    catalogue->listed = json_incref(listing.list);
    return listing.list;
}
