package channel

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

// Store is what a runner needs of a store.
type Store interface {
	belay.ListStore
	Decide(ctx context.Context, d belay.Decision) (belay.Approval, error)
}

// Options are the settings of a Runner.
type Options struct {
	// Dir is the directory for the file of the channel. It is required.
	Dir string
	// Approvers are the ids of the people who may decide. Others are refused. Defaults to nobody.
	Approvers []string
	// Link returns the address of an approval in the console. Defaults to none.
	Link func(approval string) string
	// Wake makes the runner read the store at once, for example when this process has asked for
	// an approval. Defaults to none: the runner reads it every Poll.
	Wake <-chan struct{}
	// Poll is the time between two reads of the store. Defaults to one second.
	Poll time.Duration
	// Pause is the pause after the first failed attempt. It doubles with each attempt, up to five
	// minutes. A success resets it. Defaults to one second.
	Pause time.Duration
	// Logger gets failures. By default they are discarded.
	Logger *slog.Logger
}

// Bounds of the attempts.
const (
	longestPause = 5 * time.Minute
	longestWait  = 5 * time.Second // for the lock of another process: trying it costs little
	sendTimeout  = 30 * time.Second
)

// Runner sends the approvals of a store to a channel, and takes the decisions.
type Runner struct {
	name  string
	ch    Channel
	store Store
	opts  Options
	log   *slog.Logger
	wake  chan struct{}

	mu     sync.Mutex // guards status; not held while the service is called
	status *Status
}

// New returns a runner for a channel with a name.
func New(name string, ch Channel, store Store, opts *Options) (*Runner, error) {
	if name == "" || ch == nil || store == nil || opts == nil || opts.Dir == "" {
		return nil, errors.New("new channel: the name, the channel, the store or Options.Dir is missing: set all of them")
	}
	r := &Runner{name: name, ch: ch, store: store, opts: *opts, log: opts.Logger, wake: make(chan struct{}, 1)}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.log = r.log.With("channel", name)
	r.opts.Poll, r.opts.Pause = cmp.Or(r.opts.Poll, time.Second), cmp.Or(r.opts.Pause, time.Second)
	return r, nil
}

// errRunning means that another process runs the channel.
var errRunning = errors.New("another process runs this channel: waiting until that process ends")

// Run sends approvals and takes decisions until ctx ends. If another process runs the channel, or
// the file of the channel cannot be read, Run tries again.
func (r *Runner) Run(ctx context.Context) {
	last := ""
	for failures := 0; ; failures++ {
		err := r.hold(ctx)
		if err == nil {
			return // ctx has ended
		}
		if text := err.Error(); text != last { // do not repeat what the log has
			r.log.WarnContext(ctx, "the channel does not run: trying again", "error", err)
			last = text
		}
		wait := r.pause(failures, err)
		if errors.Is(err, errRunning) {
			wait = min(wait, longestWait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// hold locks the file of the channel and runs the channel until ctx ends. It returns an error if
// it cannot read or lock the file.
func (r *Runner) hold(ctx context.Context) error {
	if err := os.MkdirAll(r.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("channel %s: %w", r.name, err)
	}
	lock, err := os.OpenFile(filepath.Join(r.opts.Dir, r.name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("channel %s: %w", r.name, err)
	}
	defer func() { _ = lock.Close() }() // closing releases the lock
	if locked, err := lockFile(lock); err != nil || !locked {
		return fmt.Errorf("channel %s: %w", r.name, cmp.Or(err, errRunning))
	}
	status, err := ReadStatus(r.opts.Dir, r.name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.status = status
	r.mu.Unlock()
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { r.receive(ctx) }) // ends with ctx
	tick := time.NewTicker(r.opts.Poll)
	defer tick.Stop()
	for {
		if err := r.poll(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot read the approvals: retrying", "error", err)
		}
		select {
		case <-tick.C:
		case <-r.wake:
		case <-r.opts.Wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// receive takes answers, and connects again when the connection fails.
func (r *Runner) receive(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		var began atomic.Pointer[time.Time] // when the service accepted the connection
		in := &Inbox{
			Connected: func() {
				now := time.Now()
				began.CompareAndSwap(nil, &now)
				r.change(func(s *Status) { s.Error = "" })
			},
			Answer: r.answer,
			Keep:   func(mark string) { r.change(func(s *Status) { s.Mark = mark }) },
			Mark:   r.Status().Mark,
		}
		err := r.safely(func() error { return r.ch.Receive(ctx, in) })
		if ctx.Err() != nil {
			return
		}
		r.change(func(s *Status) { s.Error = textOf(err) })
		if err == nil {
			return // people cannot answer here
		}
		r.log.WarnContext(ctx, "cannot receive answers: connecting again", "error", err)
		if at := began.Load(); at != nil && time.Since(*at) >= r.pause(failures, nil) {
			failures = 0 // a connection that lasted for less is no success: a service may accept and close each one
		}
		select {
		case <-time.After(r.pause(failures, err)):
		case <-ctx.Done():
		}
	}
}

// safely calls f, and turns a panic into an error.
func (r *Runner) safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return clean(err.Error(), 300)
}

// pause returns how long to wait after a number of failures.
func (r *Runner) pause(failures int, err error) time.Duration {
	wait := min(r.opts.Pause<<min(failures, 20), longestPause)
	if again, ok := errors.AsType[*RetryError](err); ok {
		wait = max(wait, min(again.After, time.Hour))
	}
	return wait
}

// change changes the state and saves it.
func (r *Runner) change(f func(*Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.status)
	if err := r.status.save(r.opts.Dir, r.name); err != nil { // the next change saves it again
		r.log.Error("cannot save the state of the channel", "error", err)
	}
}

// poll brings the channel up to date with the store.
func (r *Runner) poll(ctx context.Context) error {
	now := time.Now()
	pending := make(map[string]*belay.Approval)
	for a, err := range r.store.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			return err
		}
		if a.Expires.IsZero() || now.Before(a.Expires) {
			pending[a.ID] = &a
		}
	}
	r.forget(now)
	for id, a := range pending {
		if err := r.show(ctx, id, a.Session, now); err != nil {
			return err
		}
	}
	for _, d := range r.open() {
		if pending[d.Approval] == nil {
			if err := r.settle(ctx, d, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// open returns copies of the deliveries that are not closed.
func (r *Runner) open() []*Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Delivery
	for _, d := range r.status.Deliveries {
		if !d.Closed {
			one := *d
			all = append(all, &one)
		}
	}
	return all
}

// forget drops deliveries that were closed long ago.
func (r *Runner) forget(now time.Time) {
	old := func(d *Delivery) bool { return d.Closed && now.Sub(d.Asked) > keepClosed }
	r.mu.Lock()
	found := slices.ContainsFunc(r.status.Deliveries, old)
	r.mu.Unlock()
	if found {
		r.change(func(s *Status) { s.Deliveries = slices.DeleteFunc(s.Deliveries, old) })
	}
}

// known returns a copy of the delivery of an approval, or nil.
func (r *Runner) known(approval string) *Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.status.find(func(d *Delivery) bool { return d.Approval == approval })
	if d == nil {
		return nil
	}
	one := *d
	return &one
}

// show sends an approval, unless it was sent, or its next attempt is later.
func (r *Runner) show(ctx context.Context, approval, session string, now time.Time) error {
	d := r.known(approval)
	if d != nil && (d.Place != "" || now.Before(d.Next)) {
		return nil
	}
	question, found, err := r.question(ctx, approval, session)
	if err != nil || !found {
		return err
	}
	key := strings.ToLower(rand.Text())
	if d != nil {
		key = d.Key
	}
	request := newRequest(key, &question, r.opts.Link)
	if d == nil {
		d = &Delivery{Key: key, Approval: approval, Session: question.Session, Hash: question.Hash, Question: request.Question, Cut: request.Cut, Asked: question.Asked}
		r.change(func(s *Status) { one := *d; s.Deliveries = append(s.Deliveries, &one) })
	}
	var place string
	r.attempt(ctx, d.Approval, func(ctx context.Context) (err error) {
		place, err = r.ch.Send(ctx, request)
		return err
	}, func(d *Delivery) { d.Place = place })
	return nil
}

// question finds a pending question with its input.
func (r *Runner) question(ctx context.Context, approval, session string) (belay.Question, bool, error) {
	for q, err := range belay.Questions(ctx, r.store, belay.ApprovalFilter{Session: session}) {
		if err != nil {
			return q, false, err
		}
		if q.ID == approval {
			return q, true, nil
		}
	}
	return belay.Question{}, false, nil
}

// attempt calls the service, and records how it went.
func (r *Runner) attempt(ctx context.Context, approval string, call func(context.Context) error, done func(*Delivery)) {
	calling, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := r.safely(func() error { return call(calling) })
	if err != nil && ctx.Err() != nil {
		return // the process stops: this is no failure of the service
	}
	r.change(func(s *Status) {
		d := s.find(func(d *Delivery) bool { return d.Approval == approval })
		if err == nil {
			d.Attempts, d.Error, d.Next = 0, "", time.Time{}
			done(d)
			return
		}
		d.Attempts++
		d.Error, d.Next = textOf(err), time.Now().Add(r.pause(d.Attempts-1, err))
	})
	if err != nil {
		r.log.WarnContext(ctx, "cannot send to the channel", "approval", approval, "error", err)
	}
}

// settle shows how an approval was decided.
func (r *Runner) settle(ctx context.Context, d *Delivery, now time.Time) error {
	closed := func(d *Delivery) { d.Closed = true }
	if d.Place == "" { // it was never shown
		r.change(func(s *Status) {
			closed(s.find(func(one *Delivery) bool { return one.Approval == d.Approval }))
		})
		return nil
	}
	if now.Before(d.Next) {
		return nil
	}
	approval, found, err := r.decided(ctx, d)
	if err != nil {
		return err
	}
	outcome := "Withdrawn: the session was deleted"
	if found {
		outcome = outcomeOf(&approval)
	}
	r.attempt(ctx, d.Approval, func(ctx context.Context) error {
		request := &Request{Key: d.Key, Approval: d.Approval, Session: d.Session, Title: "Approval " + d.Approval}
		if found {
			input := r.shown(ctx, &approval)
			request = newRequest(d.Key, &input, r.opts.Link)
		}
		return r.ch.Update(ctx, d.Place, request, outcome)
	}, closed)
	r.change(func(s *Status) {
		s.find(func(one *Delivery) bool { return one.Approval == d.Approval }).Outcome = outcome
	})
	return nil
}

// decided finds an approval that is no longer pending.
func (r *Runner) decided(ctx context.Context, d *Delivery) (belay.Approval, bool, error) {
	for a, err := range r.store.Approvals(ctx, belay.ApprovalFilter{Session: d.Session}) {
		if err != nil || a.ID == d.Approval {
			return a, err == nil, err
		}
	}
	return belay.Approval{}, false, nil
}

// shown returns an approval with the input of its call, if the transcript has it.
func (r *Runner) shown(ctx context.Context, a *belay.Approval) belay.Question {
	q := belay.Question{Approval: *a}
	for m, err := range r.store.Read(ctx, a.Session, 0) {
		if err != nil {
			break // the message shows less
		}
		for _, c := range m.Calls() {
			if m.Turn == a.Turn && c.ID == a.Call {
				if q.Input = c.Input; c.Final != nil {
					q.Input = c.Final
				}
			}
		}
	}
	return q
}

// answer takes the answer of a person.
func (r *Runner) answer(ctx context.Context, a *Answer) Reply {
	r.mu.Lock()
	var d Delivery
	found := r.status.find(func(d *Delivery) bool {
		return a.Key != "" && d.Key == a.Key || a.Place != "" && d.Place == a.Place
	})
	if found != nil {
		d = *found
	}
	r.mu.Unlock()
	if found == nil && a.Key == "" {
		return Reply{Refused: true} // people also talk about other things: do not disturb them
	}
	if found == nil {
		return Reply{"This request is no longer known. Open approvals are listed by: belay approvals list", true}
	}
	if !slices.Contains(r.opts.Approvers, a.User) {
		r.log.WarnContext(ctx, "somebody who is not an approver tried to decide", "user", a.User, "approval", d.Approval)
		r.change(func(s *Status) {
			s.Refused = append(s.Refused, Refusal{clean(a.User, 100), d.Approval, time.Now().UTC().Truncate(time.Second)})
			s.Refused = s.Refused[max(0, len(s.Refused)-mostRefused):]
		})
		return Reply{fmt.Sprintf("Sorry, you cannot decide this. Your id %s is not in the list of approvers of this channel. The operator can add it.", a.User), true}
	}
	if allows(&d, a) && d.Cut {
		hint := (&Request{Cut: true, Approval: d.Approval, Link: r.link(d.Approval)}).Hint()
		return Reply{hint, true}
	}
	by := r.ch.Kind() + ":" + a.User
	text, err := r.decide(ctx, &d, a, by)
	select {
	case r.wake <- struct{}{}: // change the message now
	default:
	}
	switch {
	case err == nil:
		return Reply{Text: text}
	case errors.Is(err, belay.ErrDecided):
		if approval, found, other := r.decided(ctx, &d); found && other == nil {
			return Reply{"Somebody was faster. " + outcomeOf(&approval), true}
		}
		return Reply{"Somebody was faster: the approval is already decided.", true}
	case errors.Is(err, belay.ErrExpired):
		return Reply{"Too late: the approval has expired.", true}
	case errors.Is(err, belay.ErrWrongHash):
		return Reply{"The call is another one by now. Look at it again, and decide there.", true}
	case errors.Is(err, belay.ErrNotFound):
		return Reply{"The approval no longer exists.", true}
	case errors.Is(err, toolbox.ErrAnswer):
		return Reply{"This is not a valid answer: " + clean(strings.TrimPrefix(err.Error(), "toolbox: "), 200), true}
	default:
		r.log.ErrorContext(ctx, "cannot store the decision", "approval", d.Approval, "error", err)
		return Reply{"The decision could not be stored. Try again.", true}
	}
}

// link returns the address of an approval in the console, or "".
func (r *Runner) link(approval string) string {
	if r.opts.Link == nil {
		return ""
	}
	return r.opts.Link(approval)
}

// allows reports whether an answer approves a call, or answers a question.
func allows(d *Delivery, a *Answer) bool { return a.Allow && !a.Typed || a.Typed && d.Question }

// decide stores a decision. It is about the input that was shown.
func (r *Runner) decide(ctx context.Context, d *Delivery, a *Answer, by string) (string, error) {
	allow := allows(d, a)
	decision := belay.Decision{Approval: d.Approval, Hash: d.Hash, Allow: allow, By: by, Reason: a.Text, Time: time.Now()}
	said := "Denied."
	if allow {
		said = "Approved."
	}
	if allow && d.Question {
		question, found, err := r.question(ctx, d.Approval, d.Session)
		if err != nil {
			return "", err
		}
		if found { // otherwise the store says what is wrong
			if decision, err = toolbox.Answer(question, by, chosen(question, a)); err != nil {
				return "", err
			}
		}
		decision.Hash, decision.Time, said = d.Hash, time.Now(), "Answered."
	}
	_, err := r.store.Decide(ctx, decision)
	return said, err
}

// chosen returns the text of an answer. A number is not enough: an option may be a number, too.
func chosen(question belay.Question, a *Answer) string {
	if asked, ok := toolbox.ReadQuestion(question); ok && a.Option > 0 && a.Option <= len(asked.Options) {
		return asked.Options[a.Option-1]
	}
	return a.Text
}

// Status returns a copy of the state of the channel.
func (r *Runner) Status() *Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == nil {
		return &Status{}
	}
	out := &Status{Refused: slices.Clone(r.status.Refused), Error: r.status.Error, Mark: r.status.Mark}
	for _, d := range r.status.Deliveries {
		one := *d
		out.Deliveries = append(out.Deliveries, &one)
	}
	return out
}
