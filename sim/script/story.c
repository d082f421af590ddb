/* The stories of sim/stories/, by name. */
#include "sim/sim.h"

#include "sim/script/words.h"

static const struct sim_story *find(const char *name)
{
    const struct sim_story *story = sim_stories;

    while (story->name != NULL && !text_equal(story->name, name))
        story++;
    return story;
}

const char *sim_story_name(size_t number)
{
    for (size_t i = 0; i < number; i++) {
        if (sim_stories[i].name == NULL)
            return NULL;
    }
    return sim_stories[number].name;
}

const char *sim_story_text(const char *name)
{
    return find(name)->text;
}

const char *sim_story_about(const char *name)
{
    return find(name)->about;
}

const char *sim_story_covers(const char *name)
{
    return find(name)->covers;
}
