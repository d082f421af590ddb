/*
 * Claims on volumes of storage plugins: asked of the servers, and given back to them.
 *
 * Nothing is remembered here but who waits for an answer.  Who has a claim the machines know; one
 * whose answer was lost, with the daemon or with the connection, is asked for again, which is the
 * same claim to the servers, by its alloc; and what was never had is given back as well as what
 * was.  Publish context and secrets are of the answer only, so that what was granted to an earlier
 * life of the daemon is not recalled: its machine claims anew before it mounts anything.
 *
 * While they answer the servers may call this node themselves, its controllers and what it has
 * mounted (agent/servers).  Facts are nomad v1.1.2 to v2.0.5 nomad/csi_endpoint.go and
 * client/allocrunner/csi_hook.go.
 */
#include "server/nomad/part.h"

#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

#include <utlist.h>

enum {
    CLAIM_CALL_MS = 55 * 1000, /* less than the machine waits */
    READS = 0,                 /* kinds of claims */
    WRITES = 1,
    TAKEN = 0,       /* states of a claim: it is wanted, */
    UNPUBLISHED = 4, /* and its node is done with it */
};

/* Who waits for an answer; one of the two is called. */
struct claiming {
    struct nomad *nomad;
    control_claimed_cb *claimed;
    control_released_cb *released;
    void *ctx;
    char plugin[PLUGIN_NAME_SIZE]; /* whose volume it was when the alloc was placed */
    struct claiming *prev, *next;
};

/* --- what is asked --- */

static const char *access_of(const struct volume_define *define)
{
    return spec_access_name((enum csi_access)define->access_mode);
}

static const char *attachment_of(const struct volume_define *define)
{
    return spec_attachment_name(define->attachment_mode == CSI_ATTACHMENT_UNKNOWN
                                    ? CSI_FILE_SYSTEM
                                    : (enum csi_attachment)define->attachment_mode);
}

/* What both calls say of CLAIM; its kind is Claim in the one and Mode in the other. */
static json_t *describe(const struct nomad *nomad, const struct control_claim *claim,
                        const char *kind, int state)
{
    const struct volume_define *define = claim->define;

    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:i}", "AllocationID", claim->alloc, "NodeID",
                     nomad->config.node_id, "ExternalNodeID", claim->node_id, kind,
                     define->read_only ? READS : WRITES, "AccessMode", access_of(define),
                     "AttachmentMode", attachment_of(define), "State", state);
}

static json_t *name_volume(json_t *args, const struct volume_define *define)
{
    check(args != NULL);
    check(json_object_set_new(args, "VolumeID", json_string(define->volume)) == 0);
    check(json_object_set_new(args, "Namespace", json_string(define->namespace)) == 0);
    return args;
}

/* --- who waits --- */

static struct claiming *add(struct nomad *nomad, const struct control_claim *claim,
                            const struct claiming *from)
{
    struct claiming *claiming = calloc(1, sizeof(*claiming));

    check(claiming != NULL);
    *claiming = *from;
    claiming->nomad = nomad;
    memcpy(claiming->plugin, claim->define->plugin, sizeof(claiming->plugin));
    DL_APPEND(nomad->claiming, claiming);
    return claiming;
}

static void end(struct claiming *claiming)
{
    DL_DELETE(claiming->nomad->claiming, claiming);
    free(claiming);
}

void claims_end(struct nomad *nomad)
{
    while (nomad->claiming != NULL)
        end(nomad->claiming);
}

/* Of a claim that is asked for: why it is not had. */
static void refuse(struct claiming *claiming, int code, bool recoverable, const char *text)
{
    struct failure failure = {.code = code, .recoverable = recoverable};

    (void)text_copy(failure.text, sizeof(failure.text), text); /* cut if too long */
    text_whole(failure.text);
    if (claiming->claimed != NULL)
        claiming->claimed(claiming->ctx, NULL, &failure);
    else
        claiming->released(claiming->ctx, &failure);
    end(claiming);
}

/* Nobody would know this node: it asks again when they do. */
static bool is_too_early(struct claiming *claiming)
{
    if (claiming->nomad->registered)
        return false;
    refuse(claiming, ERR_AGAIN, true, "the servers do not know this node yet");
    return true;
}

/* --- what they grant --- */

/* MAP as pairs that borrow its texts; the list is the caller's.  False: one is no text. */
static bool read_pairs(json_t *map, struct spec_pairs *ret_pairs)
{
    const char *name;
    json_t *value;

    *ret_pairs =
        (struct spec_pairs){.items = calloc(json_object_size(map) + 1, sizeof(*ret_pairs->items))};
    check(ret_pairs->items != NULL);
    json_object_foreach(map, name, value)
    {
        if (!json_is_string(value))
            return false;
        ret_pairs->items[ret_pairs->count++] = (struct spec_pair){name, json_string_value(value)};
    }
    return true;
}

/* The flags as a list of the caller's that borrows them. */
static const char **read_flags(const json_t *options, struct control_claimed *claimed)
{
    const json_t *flags = json_object_get(options, "MountFlags"), *flag;
    const char **texts = calloc(json_array_size(flags) + 1, sizeof(*texts));
    size_t i;

    check(texts != NULL);
    json_array_foreach(flags, i, flag)
    {
        if (json_is_string(flag))
            texts[claimed->flags_count++] = json_string_value(flag);
    }
    claimed->flags = texts;
    return texts;
}

/* The answer is over for everybody else, too: what is secret of it goes with it. */
static void wipe(json_t *secrets)
{
    const char *name;
    json_t *value;

    json_object_foreach(secrets, name, value)
    {
        if (json_is_string(value))
            explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    }
}

static const char *external_of(const json_t *volume)
{
    const char *external = text_of(volume, "ExternalID");

    return external[0] != '\0' ? external : text_of(volume, "ID");
}

static void grant(struct claiming *claiming, const json_t *reply)
{
    const json_t *volume = json_object_get(reply, "Volume");
    const json_t *options = json_object_get(volume, "MountOptions");
    json_t *secrets = json_object_get(volume, "Secrets");
    struct control_claimed claimed = {.external = external_of(volume),
                                      .plugin = text_of(volume, "PluginID"),
                                      .fs_type = text_of(options, "FSType")};
    const char **flags = read_flags(options, &claimed);
    bool is_whole = read_pairs(json_object_get(volume, "Context"), &claimed.volume_context);

    is_whole &= read_pairs(json_object_get(reply, "PublishContext"), &claimed.publish_context);
    is_whole &= read_pairs(secrets, &claimed.secrets);
    if (!is_whole || claimed.external[0] == '\0') {
        refuse(claiming, ERR_CORRUPT, false, "what a server says of the volume is damaged");
    } else if (!text_equal(claimed.plugin, claiming->plugin)) {
        refuse(claiming, ERR_REFUSED, false, "the volume is one of another plugin now");
    } else {
        claiming->claimed(claiming->ctx, &claimed, NULL);
        end(claiming);
    }
    wipe(secrets);
    free(claimed.volume_context.items);
    free(claimed.publish_context.items);
    free(claimed.secrets.items);
    free(flags);
}

static void claim_answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct claiming *claiming = ctx;

    if (reply == NULL)
        refuse(claiming, err->code,
               policy_claim_trouble(err->code, err->text) <= CLAIM_TROUBLE_PASSES, err->text);
    else
        grant(claiming, reply);
}

static void ask_claim(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                      void *cb_ctx)
{
    struct nomad *nomad = ctx;
    struct claiming *claiming = add(nomad, claim, &(struct claiming){.claimed = cb, .ctx = cb_ctx});

    if (!is_too_early(claiming))
        servers_call(nomad, "CSIVolume.Claim",
                     name_volume(describe(nomad, claim, "Claim", TAKEN), claim->define), false,
                     CLAIM_CALL_MS, claim_answered, claiming);
}

/* --- giving back --- */

static void unclaim_answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct claiming *claiming = ctx;

    if (reply == NULL && policy_claim_trouble(err->code, err->text) != CLAIM_TROUBLE_GONE) {
        refuse(claiming, err->code, true, err->text);
        return;
    }
    claiming->released(claiming->ctx, NULL);
    end(claiming);
}

static void ask_unclaim(void *ctx, const struct control_claim *claim, control_released_cb *cb,
                        void *cb_ctx)
{
    struct nomad *nomad = ctx;
    struct claiming *claiming =
        add(nomad, claim, &(struct claiming){.released = cb, .ctx = cb_ctx});

    if (is_too_early(claiming))
        return;
    json_t *args = json_pack("{s:o}", "Claim", describe(nomad, claim, "Mode", UNPUBLISHED));
    servers_call(nomad, "CSIVolume.Unpublish", name_volume(args, claim->define), false,
                 CLAIM_CALL_MS, unclaim_answered, claiming);
}

static void recall(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                   void *cb_ctx)
{
    (void)ctx;
    (void)claim;
    (void)cb;
    (void)cb_ctx;
}

void claims_open(struct nomad *nomad)
{
    nomad->control = (struct control){
        .ctx = nomad, .claim = ask_claim, .unclaim = ask_unclaim, .recall = recall};
}

const struct control *nomad_control(const struct nomad *nomad)
{
    return &nomad->control;
}
