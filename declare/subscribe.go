package declare

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Command returns a subscription that runs a program at a phase, like a command in a hook
// file. The program gets the envelope on standard input, and answers by its exit code and
// its output. It runs in the working directory of this process. The timeout defaults to 5
// seconds.
func Command(phase hook.AnyPhase, id string, argv []string, opts *hook.Options) (hook.Subscription, error) {
	sub, _, err := subscribe(phase, &Declaration{ID: id, Kind: hook.HandlerCommand, Argv: slices.Clone(argv)}, opts, nil)
	return sub, err
}

// Worker returns a subscription that calls a worker: a program that keeps running and
// uses the protocol of package worker. The worker starts with its first call, in the
// working directory of this process. It ends when ctx ends. The timeout defaults to 5
// seconds.
func Worker(ctx context.Context, phase hook.AnyPhase, id string, argv []string, opts *hook.Options) (hook.Subscription, error) {
	sub, set, err := subscribe(phase, &Declaration{ID: id, Kind: hook.HandlerWorker, Argv: slices.Clone(argv)}, opts, nil)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = set.Close() }) // Close returns no error
	}
	return sub, err
}

// Webhook returns a subscription that posts the envelope to an endpoint. The endpoint
// needs no entry in an allowlist. The timeout defaults to 5 seconds.
func Webhook(phase hook.AnyPhase, id string, to Endpoint, opts *hook.Options) (hook.Subscription, error) {
	var allow []string
	if u, err := endpoint(to.URL); err == nil { // subscribe reports the error
		allow = []string{(&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()}
	}
	sub, _, err := subscribe(phase, &Declaration{ID: id, Kind: hook.HandlerWebhook, Webhook: &to}, opts, allow)
	return sub, err
}

// subscribe makes a set with one declaration, and returns its subscription.
func subscribe(phase hook.AnyPhase, d *Declaration, opts *hook.Options, allow []string) (hook.Subscription, *Set, error) {
	fail := func(err error) (hook.Subscription, *Set, error) {
		return hook.Subscription{}, nil, fmt.Errorf("declare: hook %q: %w", d.ID, err)
	}
	if phase == nil {
		return fail(errors.New("there is no phase: give one, such as belay.ToolPre"))
	}
	var err error
	if d.Dir, err = os.Getwd(); err != nil {
		return fail(err)
	}
	d.Phase = phase.Name()
	if opts != nil {
		d.Options = *opts
	}
	set, err := newSet([]*Declaration{d}, d.Options.Origin, &Options{Project: d.Dir, Allowlist: allow})
	if err != nil {
		return fail(err)
	}
	sub, err := set.subscribe(d, nil, make(map[string]*codec))
	if err != nil {
		return fail(err)
	}
	return sub, set, nil
}
