package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/toolbox"
)

// addRewind adds what /rewind needs, unless the settings switch snapshots off.
func (p *chatPlace) addRewind(c *chat.Controls) {
	if p.w.Snapshots == nil {
		return
	}
	c.Messages, c.RewindPlan, c.Rewind = p.userMessages, p.rewindPlan, p.rewind
}

// userMessages lists the messages of the user, the last first. The id of an entry is the number
// of the message.
func (p *chatPlace) userMessages(ctx context.Context, session string) ([]chat.Choice, error) {
	var all []chat.Choice
	now := time.Now()
	for m, err := range p.w.store.Read(ctx, session, 0) {
		if errors.Is(err, belay.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.Kind == belay.KindUser {
			all = append(all, chat.Choice{ID: strconv.FormatInt(m.Seq, 10), Name: oneLine(inspect.UserText(m)), About: ago(now, m.Time)})
		}
	}
	slices.Reverse(all)
	return all, nil
}

// planOf plans to go back to before a message.
func (p *chatPlace) planOf(ctx context.Context, session, at string) (*toolbox.Rewind, error) {
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("message %q: %w", at, err)
	}
	return p.w.Snapshots.Plan(ctx, p.w.store, session, n-1)
}

// rewindPlan says in one line what happens to the files.
func (p *chatPlace) rewindPlan(ctx context.Context, session, at string) (string, error) {
	plan, err := p.planOf(ctx, session, at)
	if err != nil {
		return "", err
	}
	var parts []string
	for i := range plan.Files {
		f := &plan.Files[i]
		name := f.Name
		if name == "" {
			name = f.Path
		}
		what := f.Action + " " + name
		if f.Conflict != "" || f.Lost != "" {
			what = "leave " + name + " (" + f.Conflict + f.Lost + ")"
		}
		parts = append(parts, what)
	}
	if len(parts) == 0 {
		parts = []string{"no file changes"}
	}
	if plan.Incomplete != "" {
		parts = append(parts, plan.Incomplete)
	}
	return strings.Join(parts, ", "), nil
}

// rewind goes back to before a message. It returns the new session and the text of the message.
func (p *chatPlace) rewind(ctx context.Context, session, at string, keepFiles bool) (chat.Session, string, error) { //nolint:ireturn // the chat calls it so
	plan, err := p.planOf(ctx, session, at)
	if err != nil {
		return nil, "", err
	}
	text := ""
	for m, err := range p.w.store.Read(ctx, session, plan.At) {
		if err == nil {
			text = inspect.UserText(m)
		}
		break
	}
	id := inspect.NewSessionID(time.Now())
	next, err := p.w.Snapshots.Rewind(ctx, p.w.Agent, plan, &toolbox.RewindOptions{As: id, KeepFiles: keepFiles})
	if next == nil {
		return nil, "", err
	}
	p.w.Floor.CopyMode(p.id, next.ID())
	closed := p.session.Close(ctx)
	p.id, p.session = next.ID(), next
	return next, text, errors.Join(err, closed)
}
