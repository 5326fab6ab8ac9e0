package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
)

// Catalog has the skills of any number of sources. Make one with [NewCatalog]. It is safe
// for concurrent use.
type Catalog struct {
	now atomic.Pointer[set] // the skills that are known now

	mu      sync.Mutex // held while sources are read or change
	sources []*listed  // later sources win
	added   []*listed  // skills from Add, which win over all sources
	due     atomic.Int64
}

// listed is a source with the skills that it listed last.
type listed struct {
	source   Source
	name     string
	entries  []*Skill // valid skills with compiled triggers
	given    []*Skill // the same skills as the source returned them, at the same index
	problems []Problem
}

// NewCatalog makes a catalog and reads its sources. A skill hides the skills of earlier
// sources with the same name or id. The usual order is built-in, user, project, spaces.
// NewCatalog returns no error: [Catalog.Problems] reports what is wrong with the sources.
func NewCatalog(ctx context.Context, sources ...Source) *Catalog {
	c := new(Catalog)
	for i, s := range sources {
		c.sources = append(c.sources, &listed{source: s, name: sourceName(s, i+1)})
	}
	c.Refresh(ctx)
	return c
}

// Refresh reads the sources again. An agent with the extension calls it before a turn,
// see [Options].Refresh.
func (c *Catalog) Refresh(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(ctx)
}

func (c *Catalog) refresh(ctx context.Context) {
	for _, l := range c.sources {
		l.read(ctx)
	}
	c.publish()
}

// freshen reads the sources again if enough time has passed. It does not wait if another
// goroutine is reading them. Slow sources are read less often, so that reading takes at
// most one percent of the time.
func (c *Catalog) freshen(ctx context.Context, every time.Duration) {
	began := time.Now()
	if every < 0 || began.UnixNano() < c.due.Load() || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the source took too long"))
	defer cancel()
	c.refresh(ctx)
	took := time.Since(began)
	c.due.Store(began.Add(max(every, 100*took)).UnixNano())
}

// patience is how long a turn waits for the sources.
const patience = 5 * time.Second

// Add adds all given skills. On an error it adds none. The added skills hide skills of
// all sources with the same name or id. Adding a name or an id twice is an error.
func (c *Catalog) Add(skills ...Skill) (*belay.Lease, error) {
	l := &listed{source: Values(skills...), name: "added"}
	l.read(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	var faults []error
	for i := range l.problems {
		faults = append(faults, &l.problems[i])
	}
	have := make(map[string]bool)
	for _, other := range append(slices.Clone(c.added), l) {
		for _, s := range other.entries {
			for _, key := range []string{"name " + s.Name, "id " + s.ID} {
				if have[key] {
					faults = append(faults, fmt.Errorf("skill %q: an added skill already has the %s", s.Name, key))
				}
				have[key] = true
			}
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("add skills: %w", errors.Join(faults...))
	}
	c.added = append(c.added, l)
	c.publish()
	return belay.NewLease(func() { c.remove(&c.added, l) }), nil
}

// AddSource adds a source. Its skills win over those of earlier sources, but not over
// skills from Add. [Catalog.Problems] reports what is wrong with the source.
func (c *Catalog) AddSource(ctx context.Context, source Source) *belay.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &listed{source: source, name: sourceName(source, len(c.sources)+1)}
	c.sources = append(c.sources, l)
	l.read(ctx)
	c.publish()
	return belay.NewLease(func() { c.remove(&c.sources, l) })
}

func (c *Catalog) remove(from *[]*listed, l *listed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*from = slices.DeleteFunc(slices.Clone(*from), func(o *listed) bool { return o == l })
	c.publish()
}

// read lists the skills of a source again. If listing fails completely, the old list
// stays.
func (l *listed) read(ctx context.Context) {
	given, err := l.list(ctx)
	problems := problemsOf(err, l.name)
	if given == nil && err != nil {
		l.problems = problems
		return
	}
	before := make(map[string]int, len(l.given)) // by name
	for i, s := range l.given {
		before[s.Name] = i
	}
	var kept, entries []*Skill
	for _, s := range given {
		if s == nil {
			problems = append(problems, Problem{Kind: NotLoaded, Path: l.name, Message: "a skill is nil"})
			continue
		}
		if i, ok := before[s.Name]; ok && same(l.given[i], s) {
			kept, entries = append(kept, s), append(entries, l.entries[i])
			continue
		}
		entry, err := compiled(s)
		if err != nil {
			problems = append(problems, Problem{Kind: NotLoaded, Path: cmp.Or(s.Path, l.name), Skill: s.Name, Message: fmt.Sprintf("skill %q: %v", s.Name, err), Err: err})
			continue
		}
		kept, entries = append(kept, s), append(entries, entry)
	}
	l.given, l.entries, l.problems = kept, entries, problems
}

// list calls the source. The source may be code from outside Belay, so list recovers a
// panic.
func (l *listed) list(ctx context.Context) (skills []*Skill, err error) {
	defer func() {
		if p := recover(); p != nil {
			skills, err = nil, fmt.Errorf("listing skills panicked: %v", p)
		}
	}()
	return l.source.List(ctx)
}

// compiled returns a skill with defaults filled in and triggers compiled.
func compiled(given *Skill) (*Skill, error) {
	s := *given
	s.ID = cmp.Or(s.ID, s.Name)
	if err := s.sound(); err != nil {
		return nil, err
	}
	s.Triggers = slices.Clone(s.Triggers)
	for i := range s.Triggers {
		t := &s.Triggers[i]
		var err error
		if t.compiled, err = t.compile(); err != nil {
			return nil, err
		}
		t.Type = cmp.Or(t.Type, Keyword)
	}
	return &s, nil
}

// publish merges the listed skills of all sources into a new set, if anything has
// changed. The caller holds the lock.
func (c *Catalog) publish() {
	next := newSet(c.sources, c.added)
	if old := c.now.Load(); old != nil && old.equal(next) {
		return
	}
	c.now.Store(next)
}

// Lookup returns the skill with the given name. If there is none, it returns the skill
// with that id.
func (c *Catalog) Lookup(key string) (*Skill, bool) {
	o := c.now.Load().find(key)
	if o == nil {
		return nil, false
	}
	return o.skill, true
}

// List returns all skills, sorted by priority and then by name.
func (c *Catalog) List() []*Skill { return slices.Clone(c.now.Load().skills) }

// Match returns the skills that a task makes active for an agent, sorted by priority and
// then by id. A skill is active if one of its triggers matches, or if the task names it
// as skill:ID.
func (c *Catalog) Match(task, agent string) []Match {
	return c.now.Load().matcher().match(task, agent)
}

// Problems returns the problems of all sources: skills that could not be loaded, skills
// that other skills hide, and tolerated mistakes.
func (c *Catalog) Problems() []Problem { return slices.Clone(c.now.Load().problems) }

// Read returns the body of a skill, or one of its sections. The key is the skill's name
// or id. The error is ErrNotFound if there is no such skill or section. The text of the
// error lists the skills that the model may read.
func (c *Catalog) Read(ctx context.Context, key, section string) (Reading, error) {
	o := c.now.Load().find(key)
	if o == nil || !o.skill.content() {
		return Reading{}, c.now.Load().missing(key, (*Skill).listedToRead)
	}
	return o.read(ctx, section)
}

// listedToRead reports whether the tool read_skill lists the skill.
func (s *Skill) listedToRead() bool {
	return s.content() && !s.callable() && !s.Hidden && !s.UserOnly
}

// owned is a skill with its source.
type owned struct {
	skill  *Skill
	source Source
	from   string // the file or the name of the source, for messages
}

// read returns the text of a skill. It asks the source if the skill itself has no text.
func (o *owned) read(ctx context.Context, section string) (r Reading, err error) {
	defer func() {
		if p := recover(); p != nil { // the source may be code from outside Belay
			err = fmt.Errorf("skill %q: reading it panicked: %v", o.skill.Name, p)
		}
	}()
	if o.skill.Body != "" || len(o.skill.Sections) > 0 {
		r, err = o.skill.read(section)
	} else {
		r, err = o.source.Read(ctx, o.skill.ID, section)
	}
	if section != "" && errors.Is(err, ErrNotFound) {
		whole := r
		if whole.Sections == nil {
			whole, _ = o.source.Read(ctx, o.skill.ID, "")
		}
		if len(whole.Sections) == 0 {
			return r, fmt.Errorf("skill %q has no section %q: %w. The skill has no sections: read it without a section", o.skill.Name, section, ErrNotFound)
		}
		return r, fmt.Errorf("skill %q has no section %q: %w. It has: %s", o.skill.Name, section, ErrNotFound, strings.Join(whole.Sections, ", "))
	}
	r.Name = o.skill.Name
	return r, err
}
