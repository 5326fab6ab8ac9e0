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

// Catalog holds the skills of any number of sources. Make one with [NewCatalog]. It
// is safe for concurrent use.
type Catalog struct {
	now atomic.Pointer[set] // what is known

	mu      sync.Mutex // held while sources are read or change
	sources []*listed  // in rising precedence
	added   []*listed  // added by Add, above all sources
	due     atomic.Int64
}

// listed is a source with what it listed last.
type listed struct {
	source   Source
	name     string
	entries  []*Skill // sound, with their triggers compiled
	given    []*Skill // as the source lists them, parallel to entries
	problems []Problem
}

// NewCatalog makes a catalog of sources in rising precedence: a skill hides the
// skills of earlier sources with the same name or id. The usual order is built-in,
// user, project, spaces. The sources are read before it returns; [Catalog.Problems]
// reports what is wrong with them.
func NewCatalog(ctx context.Context, sources ...Source) *Catalog {
	c := new(Catalog)
	for i, s := range sources {
		c.sources = append(c.sources, &listed{source: s, name: sourceName(s, i+1)})
	}
	c.Refresh(ctx)
	return c
}

// Refresh reads the sources again. An agent does this automatically before its
// turns.
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

// freshen reads the sources again if that was last done some time ago. It does
// not wait while another goroutine reads them. Slow sources are read less
// often: reading takes at most one percent of the time.
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

// patience is how long the turn of an agent waits for sources.
const patience = 5 * time.Second

// Add adds skills, all or none. They hide skills of all sources with the same
// name or id. A name or an id that was already added is an error.
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
					faults = append(faults, fmt.Errorf("skill %q: another was added with the %s", s.Name, key))
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

// AddSource adds a source above the existing sources and below skills added with
// Add. Problems reports what is wrong with it.
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

// read reads a source. If it fails completely, its last list stays.
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

// list calls the source, which is foreign code and may panic.
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

// publish makes a new set of the listed skills, if anything has changed. The
// caller holds the lock.
func (c *Catalog) publish() {
	next := newSet(c.sources, c.added)
	if old := c.now.Load(); old != nil && old.equal(next) {
		return
	}
	c.now.Store(next)
}

// Lookup returns the skill with a name, or else with an id.
func (c *Catalog) Lookup(key string) (*Skill, bool) {
	o := c.now.Load().find(key)
	if o == nil {
		return nil, false
	}
	return o.skill, true
}

// List returns the skills, by priority and then name.
func (c *Catalog) List() []*Skill { return slices.Clone(c.now.Load().skills) }

// Match returns the skills that a task makes active for an agent, by priority and
// then id: those with a trigger that matches, and those that the text names as
// skill:ID.
func (c *Catalog) Match(task, agent string) []Match {
	return c.now.Load().matcher().match(task, agent)
}

// Problems returns what is wrong with the sources: skills that could not be
// loaded, skills that are hidden by others, and tolerated mistakes.
func (c *Catalog) Problems() []Problem { return slices.Clone(c.now.Load().problems) }

// Read reads the body of a skill, by its name or id, or one of its sections. It returns
// ErrNotFound if there is no such skill or section; the error lists those that the model
// may see.
func (c *Catalog) Read(ctx context.Context, key, section string) (Reading, error) {
	o := c.now.Load().find(key)
	if o == nil || !o.skill.content() {
		return Reading{}, c.now.Load().missing(key, (*Skill).listedToRead)
	}
	return o.read(ctx, section)
}

// listedToRead reports whether the reading tool lists it.
func (s *Skill) listedToRead() bool {
	return s.content() && !s.callable() && !s.Hidden && !s.UserOnly
}

// owned is a skill with its source.
type owned struct {
	skill  *Skill
	source Source
	from   string // its source, for messages
}

// read returns the skill's text, from its source if the skill has no text
// itself.
func (o *owned) read(ctx context.Context, section string) (r Reading, err error) {
	defer func() {
		if p := recover(); p != nil { // the source is foreign code
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
			return r, fmt.Errorf("skill %q has no section %q: %w. It has none: read it without one", o.skill.Name, section, ErrNotFound)
		}
		return r, fmt.Errorf("skill %q has no section %q: %w. It has: %s", o.skill.Name, section, ErrNotFound, strings.Join(whole.Sections, ", "))
	}
	r.Name = o.skill.Name
	return r, err
}
