package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
)

// reloads reports the results when the files of a place change while an agent runs.
type reloads struct {
	from     *Assembler
	settings *config.Loaded
	lease    *space.Lease
	notes    []space.Note // notes that were already shown
	failed   bool         // the files on disk cannot be loaded
}

// told reports and logs the result of loading changed files. It is called after each
// attempt.
func (r *reloads) told(err error) {
	log := r.from.hookLogger(r.settings)
	if err != nil {
		r.failed = true
		log.Warn("hooks changed and cannot be loaded", "error", err)
		r.from.warned(r.unloadable(err))
		return
	}
	if r.failed {
		r.failed = false
		r.from.relieved(fmt.Sprintf("the files of %s are loaded again and active", placeOf(r.lease.Space())))
	}
	notes := r.lease.Notes()
	for _, n := range notes {
		log.Warn("a hook does not run", "hook", n.ID, "closed", n.Closed, "reason", n.Reason)
		if !slices.Contains(r.notes, n) {
			r.from.warned(noteLine(n))
		}
	}
	r.notes = notes
}

// unloadable describes the mistakes in changed files. It says that the previous version
// stays active.
func (r *reloads) unloadable(err error) string {
	problems := space.Problems(err)
	if len(problems) == 0 {
		return visible.OneLine(err.Error())
	}
	lines := []string{fmt.Sprintf("changed files of %s cannot be loaded: the version that was loaded before stays active until you correct them", placeOf(r.lease.Space()))}
	for _, p := range problems {
		shown := *p
		shown.Path = ShownPath(r.settings, p.Path)
		lines = append(lines, visible.OneLine(shown.Error()))
	}
	return strings.Join(lines, "\n")
}

// placeOf returns the name of a place for messages.
func placeOf(s *space.Space) string {
	switch s.Origin.Kind {
	case hook.OriginProject:
		return "the project"
	case hook.OriginSpace:
		return s.Label()
	default:
		return s.Dir
	}
}

// watchSkills reports skill files that can no longer be loaded, and files that can be
// loaded again, until ctx is done. It only reports: the agent itself loads changed files
// before its turns. known are the problems that were already reported.
func (a *Assembler) watchSkills(ctx context.Context, s *config.Loaded, catalog *skill.Catalog, known []skill.Problem) {
	often := time.NewTicker(time.Second)
	defer often.Stop()
	for {
		known = a.tellSkills(s, known, unloaded(catalog))
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
	}
}

// unloaded returns the problems of skill files that could not be loaded.
func unloaded(catalog *skill.Catalog) []skill.Problem {
	return slices.DeleteFunc(catalog.Problems(), func(p skill.Problem) bool { return p.Kind != skill.NotLoaded })
}

// tellSkills reports the differences between the known problems and the current problems.
// It returns the current problems.
func (a *Assembler) tellSkills(s *config.Loaded, known, now []skill.Problem) []skill.Problem {
	in := func(list []skill.Problem, p skill.Problem) bool {
		return slices.ContainsFunc(list, func(o skill.Problem) bool { return o.Error() == p.Error() })
	}
	at := func(list []skill.Problem, path string) bool {
		return slices.ContainsFunc(list, func(o skill.Problem) bool { return o.Path == path })
	}
	for _, p := range now {
		if !in(known, p) {
			shown := p
			shown.Path = ShownPath(s, p.Path)
			a.warned("a skill cannot be loaded and is left out until you correct it: " + visible.OneLine(shown.Error()))
		}
	}
	for _, p := range known {
		if _, err := os.Stat(p.Path); !at(now, p.Path) && !errors.Is(err, fs.ErrNotExist) {
			a.relieved(ShownPath(s, p.Path) + ": the skill can be loaded again and is active")
		}
	}
	return now
}
