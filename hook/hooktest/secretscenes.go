package hooktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// secretInput is an input that contains secrets.
type secretInput struct {
	scene     string
	text      string
	reference string
	cancel    context.CancelCauseFunc
}

// secretAnswer is an answer that contains secrets. Only its audit notes are safe.
type secretAnswer struct {
	deny, context, rewrite string
	audit                  []hook.Audit
	jobs                   []hook.Job
}

// Answer describes the answer to the runtime.
func (a secretAnswer) Answer() *hook.Answer {
	answer := &hook.Answer{Audit: a.audit, Jobs: a.jobs}
	if a.deny != "" {
		answer.Severity = hook.SeverityDeny
		answer.Parts = append(answer.Parts, hook.Part{Kind: "deny", Needs: hook.CanBlock, Content: a.deny})
	}
	if a.context != "" {
		answer.Parts = append(answer.Parts, hook.Part{Kind: "context", Needs: hook.CanAddContext, Content: a.context})
	}
	if a.rewrite != "" {
		answer.Parts = append(answer.Parts, hook.Part{Kind: "input", Needs: hook.CanRewriteInput, Content: a.rewrite})
	}
	return answer
}

type secretPhase = hook.Phase[secretInput, secretAnswer]

// The phases of the scenes, one for each kind.
var (
	secretGate    = defineSecretPhase("secrets.gate", hook.Gate)
	secretCollect = defineSecretPhase("secrets.collect", hook.Collect)
	secretObserve = defineSecretPhase("secrets.observe", hook.Observe)
)

func defineSecretPhase(name string, kind hook.Kind) secretPhase {
	return hook.Define(hook.Definition[secretInput, secretAnswer]{
		Name: name, Kind: kind,
		Capabilities: hook.CanBlock | hook.CanAddContext | hook.CanRewriteInput | hook.CanAudit | hook.CanSchedule,
		Labels: map[string]func(secretInput) string{
			"scene": func(in secretInput) string { return in.scene },
			"text":  func(in secretInput) string { return secret("label") + in.text },
		},
		Scope: func(secretInput) *hook.Scope {
			return &hook.Scope{Session: "session", Turn: "turn", Step: 1, Agent: "main"}
		},
		Reference: func(in secretInput) string { return in.reference },
		Merge: func(m *hook.Merging, _, answer secretAnswer) secretAnswer {
			m.Diagnose(codes.PolicyConflict, "the earlier one is used")
			return answer
		},
		Rewrite: func(in secretInput, answer secretAnswer) (secretInput, error) {
			switch {
			case strings.Contains(answer.rewrite, "fail"):
				return in, errors.New(secret("rewrite-error"))
			case strings.Contains(answer.rewrite, "panic"):
				panic(secret("rewrite-panic"))
			}
			in.text = answer.rewrite
			return in, nil
		},
		Closed: func(p hook.Problem) (secretAnswer, bool) {
			return secretAnswer{deny: secret("closed") + p.Reason()}, kind == hook.Gate
		},
		Decode: func(_ hook.Scope, data []byte) (secretInput, error) {
			return secretInput{}, fmt.Errorf("cannot decode %s: %s", secret("decode-error"), data)
		},
	})
}

// secretScene is one subscription, with the settings of the dispatch that reaches it.
type secretScene struct {
	phase     secretPhase
	sub       hook.Subscription
	reference string
	cancelled bool // the context is cancelled before the dispatch
}

// secretBehaviour is a handler that uses secrets, with the options of its subscription.
type secretBehaviour struct {
	name      string
	handle    func(ctx context.Context, in secretInput) (secretAnswer, error)
	opts      hook.Options
	reference string // defaults to a valid reference
	cancelled bool
	brief     bool // test it with one failure mode only
}

// secretScenes returns every behaviour, in every execution and failure mode that each kind
// of phase allows.
func secretScenes() []secretScene {
	var scenes []secretScene
	for _, phase := range []secretPhase{secretGate, secretCollect, secretObserve} {
		for i, run := range secretExecutions(phase) {
			for _, b := range secretBehaviours() {
				opts := run
				if !mergeOptions(&opts, b.opts) || b.brief && !isPlain(run) {
					continue
				}
				id := fmt.Sprintf("%s/%d/%s", phase.Info().Kind, i, b.name)
				opts.Match.Labels = map[string][]string{"scene": {id}, "text": {"*"}}
				if b.reference == "" {
					b.reference = "transcript:1/2"
				}
				scenes = append(scenes, secretScene{phase, phase.On(id, b.handle, &opts), b.reference, b.cancelled})
			}
		}
	}
	return scenes
}

// secretExecutions returns the executions and failure modes of a phase.
func secretExecutions(phase secretPhase) []hook.Options {
	modes := []hook.Failure{hook.Open}
	if phase.Info().Kind != hook.Observe {
		modes = append(modes, hook.Closed, phase.Fallback(secretAnswer{context: secret("fallback")}))
	}
	var all []hook.Options
	for _, mode := range modes {
		all = append(all,
			hook.Options{Failure: mode},
			hook.Options{Failure: mode, Timeout: time.Minute},
			hook.Options{Failure: mode, Concurrent: true},
			hook.Options{Failure: mode, Execution: hook.Deadline, Timeout: time.Minute})
	}
	if phase.Info().Kind != hook.Gate {
		all = append(all,
			hook.Options{Failure: hook.Open, Execution: hook.FireAndRecord, Timeout: time.Minute},
			hook.Options{Failure: hook.Open, Execution: hook.Background, Timeout: time.Minute})
	}
	return all
}

// isPlain reports whether the options are the simplest ones of their execution.
func isPlain(opts hook.Options) bool {
	return opts.Failure == hook.Open && !opts.Concurrent && (opts.Execution != hook.Blocking || opts.Timeout == 0)
}

// mergeOptions adds the options that a behaviour needs to those of an execution. It reports
// whether the two are compatible.
func mergeOptions(opts *hook.Options, needs hook.Options) bool {
	waits := opts.Execution == hook.Blocking || opts.Execution == hook.Deadline
	if needs.Capabilities != 0 {
		opts.Capabilities = needs.Capabilities
		rewrites := needs.Capabilities&hook.CanRewriteInput != 0
		if opts.Failure.String() == "fallback" || rewrites && (opts.Concurrent || !waits) {
			return false
		}
	}
	if needs.Timeout > 0 {
		if opts.Timeout == 0 {
			return false // the dispatch would not end
		}
		opts.Timeout = needs.Timeout
	}
	opts.Shadow, opts.Match.When = needs.Shadow, needs.Match.When
	return true
}

// secretBehaviours returns every known behaviour that could leak a secret.
func secretBehaviours() []secretBehaviour {
	all := []secretBehaviour{
		{name: "contributes", handle: says(secretAnswer{
			deny: secret("deny"), context: secret("context"), audit: []hook.Audit{{Code: "note", Message: safe("audit")}},
		})},
		{name: "notes", handle: says(secretAnswer{audit: []hook.Audit{{Code: "note", Message: safe("audit")}}})},
		{name: "in-the-shadow", handle: says(secretAnswer{deny: secret("shadow")}), opts: hook.Options{Shadow: true}},
		{name: "overreaches", handle: says(secretAnswer{context: secret("overreach")}), opts: hook.Options{Capabilities: hook.NoCapability}},
		{name: "fails-in-the-shadow", handle: fails(errors.New(secret("shadow-error"))), opts: hook.Options{Shadow: true}},
		{name: "fails", handle: fails(errors.New(secret("error")))},
		{name: "fails-safely", handle: fails(&hook.SafeError{Message: safe("error"), Reason: secret("reason"), Err: errors.New(secret("cause"))})},
		{name: "fails-wrapped", handle: fails(fmt.Errorf("%s: %w", secret("wrapping"), &hook.SafeError{Message: safe("error")}))},
		{name: "panics", handle: panics(secret("panic"))},
		{name: "panics-with-error", handle: panics(errors.New(secret("panic-error")))},
		{name: "panics-safely", handle: panics(&hook.SafeError{Err: errors.New(secret("panic-cause"))})},
		{name: "exits", handle: func(context.Context, secretInput) (secretAnswer, error) {
			runtime.Goexit()
			return secretAnswer{}, nil
		}},
		{name: "hangs", opts: hook.Options{Timeout: time.Millisecond}, handle: func(ctx context.Context, in secretInput) (secretAnswer, error) {
			<-ctx.Done()
			return secretAnswer{context: in.text + secret("late")}, errors.New(secret("late-error"))
		}},
		{name: "cancelled-before", handle: says(secretAnswer{}), cancelled: true},
		{name: "cancelled-meanwhile", handle: func(ctx context.Context, in secretInput) (secretAnswer, error) {
			in.cancel(errors.New(secret("cancelled")))
			return secretAnswer{}, context.Cause(ctx)
		}},
		{name: "rewrites", handle: says(secretAnswer{rewrite: secret("rewrite")}), opts: hook.Options{Capabilities: hook.CanRewriteInput}},
		{name: "rewrites-wrongly", handle: says(secretAnswer{rewrite: secret("fail")}), opts: hook.Options{Capabilities: hook.CanRewriteInput}},
		{name: "rewrites-panicking", handle: says(secretAnswer{rewrite: secret("panic")}), opts: hook.Options{Capabilities: hook.CanRewriteInput}},
		{name: "fails-to-match", handle: says(secretAnswer{}), opts: hook.Options{
			Match: hook.Match{When: hook.When("fails", func(secretInput) bool { panic(secret("condition")) })},
		}},
		{name: "refers-wrongly", handle: says(secretAnswer{}), reference: "not a reference: " + secret("reference")},
		{name: "schedules-unknown", handle: schedules(hook.Job{Handler: secret("job-handler"), Key: "key"})},
		{name: "schedules-without-key", handle: schedules(hook.Job{Handler: "secrets.ok", Key: "not a key: " + secret("job-key")})},
		{name: "schedules-wrongly", handle: schedules(hook.Job{Handler: "secrets.ok", Key: "key", Reference: "not a reference: " + secret("job-reference")})},
	}
	for _, code := range codes.All() { // an error may use a code of the runtime, with a cause that must not be stored
		name := strings.ReplaceAll(string(code.Code), "_", "-")
		all = append(all, secretBehaviour{
			name: "fails-with-" + name, brief: true,
			handle: fails(&hook.SafeError{Code: code.Code, Err: errors.New(secret("cause-of-" + strings.ReplaceAll(name, ".", "-")))}),
		})
	}
	for _, h := range secretJobs() {
		all = append(all, secretBehaviour{name: "schedules-" + h.Name, handle: schedules(hook.Job{Handler: h.Name})})
	}
	return all
}

// secretJobs returns job handlers that use secrets.
func secretJobs() []hook.JobHandler {
	work := func(name string, run func(ctx context.Context) error) hook.JobHandler {
		return hook.JobHandler{
			Name: "secrets." + name, Timeout: 5 * time.Second, Idempotent: true,
			Run: func(ctx context.Context, _ hook.Job) ([]hook.Audit, error) {
				return []hook.Audit{{Code: "done", Message: safe("job-audit")}}, run(ctx)
			},
		}
	}
	hanging := work("hangs", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New(secret("job-late"))
	})
	hanging.Timeout = time.Millisecond
	return []hook.JobHandler{
		work("ok", func(context.Context) error { return nil }),
		work("fails", func(context.Context) error { return errors.New(secret("job-error")) }),
		work("panics", func(context.Context) error { panic(secret("job-panic")) }),
		hanging,
	}
}

func says(answer secretAnswer) hook.Handler[secretInput, secretAnswer] {
	return func(context.Context, secretInput) (secretAnswer, error) { return answer, nil }
}

func fails(err error) hook.Handler[secretInput, secretAnswer] {
	return func(context.Context, secretInput) (secretAnswer, error) {
		return secretAnswer{context: secret("beside-error")}, err
	}
}

func panics(value any) hook.Handler[secretInput, secretAnswer] {
	return func(context.Context, secretInput) (secretAnswer, error) { panic(value) }
}

// schedules returns a handler that schedules a job. A job without a key gets the key of the
// scene.
func schedules(job hook.Job) hook.Handler[secretInput, secretAnswer] {
	return func(_ context.Context, in secretInput) (secretAnswer, error) {
		own := job
		if own.Key == "" {
			own.Key, own.Reference = "key:"+in.scene, "transcript:1/2"
		}
		return secretAnswer{jobs: []hook.Job{own}}, nil
	}
}
