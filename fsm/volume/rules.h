/* What the guards and events of the volume table mean.  Private to the room. */
#ifndef CAIRN_FSM_VOLUME_RULES_H
#define CAIRN_FSM_VOLUME_RULES_H

#include "fsm/volume.h"

/*    guard          function                 holds when */
#define VOLUME_GUARDS(X)                                                                           \
    X(MUST_STAGE, volume_must_stage)         /* our turn, and nobody has staged it yet */          \
    X(MUST_PUBLISH, volume_must_publish)     /* our turn, and it is staged or need not be */       \
    X(PLUGIN_MISSED, volume_plugin_missed)   /* none came in time */                               \
    X(PLUGIN_STAGES, volume_plugin_stages)   /* the plugin wants volumes staged */                 \
    X(CALLING, volume_calling)               /* a call to the plugin is under way */               \
    X(RETRY, volume_retry)                   /* the failure may go away, and tries are left */     \
    X(RETRY_FIRST, volume_retry_first)       /* the same, and none has failed before it */         \
    X(STAGE_FIRST, volume_stage_first)       /* the plugin has lost the stage: once more of it */  \
    X(UNDO_FIRST, volume_undo_first)         /* published otherwise, and nobody has run on it */   \
    X(UNDOING, volume_undoing)               /* and that was to be undone */                       \
    X(LIED, volume_lied)                     /* it says for too long that it is not mounted */     \
    X(MISSED, volume_missed)                 /* the plugin may count one more publish of it */     \
    X(BACK_UNPUBLISH, volume_back_unpublish) /* our turn to unpublish */                           \
    X(BACK_UNSTAGE, volume_back_unstage) /* our turn to unstage: published no more, last user */   \
    X(AGAIN_UNPUBLISH,                                                                             \
      volume_again_unpublish) /* the same once the pause after a failure is over */                \
    X(AGAIN_UNSTAGE, volume_again_unstage)                                                         \
    X(BACK_UNMOUNT, volume_back_unmount) /* nobody knows by which id to unpublish */               \
    X(BACK_UNMOUNT_STAGING, volume_back_unmount_staging) /* or to unstage */                       \
    X(AGAIN_UNMOUNT, volume_again_unmount)                                                         \
    X(AGAIN_UNMOUNT_STAGING, volume_again_unmount_staging)                                         \
    X(BACK_WAIT, volume_back_wait)   /* something is to be undone, or may yet be done */           \
    X(BACK_CLAIM, volume_back_claim) /* nothing is mounted, the claim remains */                   \
    X(RELEASE_WANTED, volume_release_wanted)                                                       \
    X(RELEASE_UNPUBLISH, volume_release_unpublish)                                                 \
    X(RELEASE_UNSTAGE, volume_release_unstage)                                                     \
    X(RELEASE_WAIT, volume_release_wait)                                                           \
    X(STRAYING, volume_straying) /* a call that was given up may still go on in the plugin */      \
    X(PAUSING, fsm_pausing)      /* a pause before the next try is under way */
enum volume_guard {
    VG_ALWAYS,
#define X(name, function) VG_##name,
    VOLUME_GUARDS(X)
#undef X
        VG_COUNT,
};

#define X(name, function)                                                                          \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now);
VOLUME_GUARDS(X)
#undef X

void volume_absorb(struct machine *record, const struct fsm_event *event,
                   const struct fsm_now *now);
void volume_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now);
uint64_t volume_deadline(const struct machine *record, const struct fsm_now *now);
uint64_t volume_backoff_ms(const struct machine *record, const struct fsm_now *now);
void volume_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx);
uint32_t volume_record_size(const struct machine *record);
const char *volume_broken(const struct machine *record);

#endif
