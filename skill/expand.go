package skill

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/scan"
)

// Expand adds, before a message, the skills that the message names as /name. It is for an
// agent that may use all skills.
func (e *Extension) Expand(ctx context.Context, in belay.Submission) (belay.Expansion, error) {
	return e.forAll(in.Agent).Expand(ctx, in)
}

// Expand adds, before a message, the skills that the message names as /name.
func (s *scoped) Expand(ctx context.Context, in belay.Submission) (belay.Expansion, error) {
	s.catalog.freshen(ctx, s.opts.Refresh)
	x := &expanding{scoped: s, set: s.catalog.now.Load(), in: &in, read: make(map[string]*template)}
	behind := scan.Behind(in.Typed, in.Names)
	var out belay.Expansion
	for i, name := range in.Names {
		injection, err := x.inject(ctx, name, behind[i])
		if err != nil {
			return belay.Expansion{}, fmt.Errorf("/%s: %w", name, err)
		}
		out.Injected = append(out.Injected, injection)
	}
	return out, nil
}

// expanding is the state of Expand for one message. It reads each skill only once, even
// if the message names the skill several times.
type expanding struct {
	scoped *scoped
	set    *set
	in     *belay.Submission
	read   map[string]*template // by name
	size   int                  // bytes of all texts so far
}

// template is the text of a skill.
type template struct {
	reading Reading
	pieces  []string // the text, split at each $ARGUMENTS
	size    int      // bytes of all pieces
}

// mostInjected is how many bytes the skills of one message may add. Without this limit, a
// message that names a skill with $ARGUMENTS many times could grow quadratically.
const mostInjected = 64 << 20

// inject makes the message that is added before the user's message for one skill.
func (x *expanding) inject(ctx context.Context, name, arguments string) (belay.Injection, error) {
	o := x.scoped.find(x.set, name)
	if o == nil { // the skill was just removed
		return belay.Injection{}, ErrNotFound
	}
	use := &Use{Name: o.skill.Name, Source: ByUser, Text: x.in.Text, Session: x.in.Session, Turn: x.in.Turn, Agent: x.in.Agent, Controls: x.in.Controls}
	use.tell()
	if o.skill.Handler != nil {
		parts, err := o.compute(ctx, use)
		if err != nil {
			return belay.Injection{}, err
		}
		if len(parts) == 0 {
			parts = []belay.Part{belay.Text("")}
		}
		return Reading{Name: o.skill.Name, Path: o.skill.Path}.Message(parts...), nil
	}
	t, err := x.template(ctx, o)
	if err != nil {
		return belay.Injection{}, err
	}
	r := t.reading
	if fill := x.scoped.opts.Fill; fill != nil {
		text, ok, err := fill(ctx, &Typed{Skill: o.skill, Text: r.Text, Arguments: arguments, Session: x.in.Session, Controls: x.in.Controls})
		if err != nil {
			return belay.Injection{}, err
		}
		if ok {
			r.Text = text
			return r.Message(), x.grow(len(text))
		}
	}
	if err := x.grow(t.size + (len(t.pieces)-1)*len(arguments)); err != nil {
		return belay.Injection{}, err
	}
	r.Text = strings.Join(t.pieces, arguments)
	return r.Message(), nil
}

// grow returns an error if the texts of all skills in the message become too large.
func (x *expanding) grow(size int) error {
	if x.size += size; x.size > mostInjected {
		return fmt.Errorf("the skills in the message add more than %d MiB of text: name fewer skills", mostInjected>>20)
	}
	return nil
}

// template reads a skill and expands its variables. It does not expand variables inside
// inserted values.
func (x *expanding) template(ctx context.Context, o *owned) (*template, error) {
	if t := x.read[o.skill.Name]; t != nil {
		return t, nil
	}
	r, err := o.read(ctx, "")
	if err != nil {
		return nil, err
	}
	t := &template{reading: r, pieces: strings.Split(r.Text, argumentsMark)}
	if o.skill.template() {
		v := x.scoped.variables(r.Text, x.in.Agent, taskOf(x.in.Text))
		for i := range t.pieces {
			t.pieces[i] = v.Expand(t.pieces[i])
		}
	}
	for _, piece := range t.pieces {
		t.size += len(piece)
	}
	x.read[o.skill.Name] = t
	return t, nil
}

// tell emits the event that a skill is used.
func (u *Use) tell() {
	if u.Controls == nil {
		return
	}
	_ = u.Controls.Emit(belay.Event{ // an error only means that the watchers are gone
		Kind: belay.EventSkillInvoked, Text: u.Name, Invoked: &belay.InvokedEvent{Name: u.Name, Source: string(u.Source), Args: u.Args},
	})
}

// argumentsMark is replaced by the text that the user typed after the name of the skill.
const argumentsMark = "$ARGUMENTS"
