package hooktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// TestSecrets puts secrets wherever a program has text that must not be stored: in inputs,
// labels, answers, errors and their causes, panics, cancellations, rewrites, fallbacks and
// malformed jobs. It uses every execution and failure mode. It stores everything in the
// journal and the queue that open returns, and searches both for the secrets. It also
// searches for text that must be stored, to prove that the search works.
//
// TestSecrets searches the runs that the journal lists, the jobs that the queue got and
// returned, and the result of Store.Dump. The store needs room for 2,000 runs and 500 jobs.
func TestSecrets(t *testing.T, open func(t testing.TB) Store) {
	t.Helper()
	checkSecrets(t, open(t))
}

// Secrets and safe texts are plain words, because no encoding changes plain words.
const (
	secretMark = "planted-secret-"
	safeMark   = "planted-safe-"
)

var plantedWord = lazyregexp.New(`(?:` + secretMark + `|` + safeMark + `)[a-z0-9-]*`)

// safeWords are texts that must be stored, because a handler marked them as safe.
var safeWords = []string{safe("audit"), safe("error"), safe("job-audit")}

// secret returns a text that must not be stored. The text names where it was put.
func secret(where string) string { return secretMark + where }

// safe returns a text that may be stored.
func safe(where string) string { return safeMark + where }

func checkSecrets(t testing.TB, store Store) {
	t.Helper()
	scenes := secretScenes()
	play := newSecretPlay(t, store, scenes)
	for _, s := range scenes {
		play.scene(t, s)
	}
	play.performJobs(t)
	play.elsewhere(t)
	found := play.search(t)
	for _, word := range slices.Sorted(maps.Keys(found)) {
		if strings.HasPrefix(word, secretMark) {
			t.Errorf("%q was stored, in %s", word, found[word])
		}
	}
	for _, word := range safeWords {
		if found[word] == "" {
			t.Errorf("%q was not found: safe text must be stored, so the search did not see everything", word)
		}
	}
}

// secretPlay is a runtime that stores everything in the store under test.
type secretPlay struct {
	store  Store
	scenes []secretScene
	queue  *watchedQueue
	rt     *hook.Runtime
	snap   *hook.Snapshot
}

func newSecretPlay(t testing.TB, store Store, scenes []secretScene) *secretPlay {
	t.Helper()
	if store.Journal == nil || store.Queue == nil {
		t.Fatal("hooktest: TestSecrets needs a journal and a queue")
	}
	play := &secretPlay{store: store, scenes: scenes, queue: &watchedQueue{Queue: store.Queue}}
	play.rt = play.runtime(t, &hook.RuntimeOptions{Journal: store.Journal, Queue: play.queue})
	play.snap = play.rt.Snapshot()
	return play
}

// runtime makes a runtime and installs the subscriptions of all scenes.
func (play *secretPlay) runtime(t testing.TB, opts *hook.RuntimeOptions) *hook.Runtime {
	t.Helper()
	rt, err := hook.NewRuntime([]hook.AnyPhase{secretGate, secretCollect, secretObserve}, opts)
	if err != nil {
		t.Fatalf("hooktest: %v", err)
	}
	if _, err := rt.InstallJobs(secretJobs()...); err != nil {
		t.Fatalf("hooktest: %v", err)
	}
	subs := make([]hook.Subscription, len(play.scenes))
	for i, s := range play.scenes {
		subs[i] = s.sub
	}
	if _, err := rt.Install(subs...); err != nil {
		t.Fatalf("hooktest: %v", err)
	}
	return rt
}

// scene dispatches one input. Only the subscription of the scene matches it.
func (play *secretPlay) scene(t testing.TB, s secretScene) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	in := secretInput{scene: s.sub.ID(), text: secret("input"), reference: s.reference, cancel: cancel}
	if s.cancelled {
		cancel(errors.New(secret("cancelled-before")))
	}
	ended := make(chan struct{})
	go func() { // ends when the dispatch ends, or with Goexit
		defer close(ended)
		_, _ = s.phase.Dispatch(ctx, play.snap, in) // only the stored data matters, not the outcome
	}()
	if !endedWithin(ended, patience) {
		t.Fatalf("hooktest: %s at %s does not end", s.sub.ID(), s.phase.Name())
	}
}

// performJobs runs each queued job once and settles it. Half of the failed jobs stay in the
// queue for a retry.
func (play *secretPlay) performJobs(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := play.rt.Drain(ctx); err != nil {
		t.Fatalf("hooktest: %v", err)
	}
	if err := play.snap.Release(ctx); err != nil {
		t.Fatalf("hooktest: %v", err)
	}
	for i := 0; ; i++ {
		jobs := play.queue.all() // background work can schedule more jobs
		if i == len(jobs) {
			return
		}
		play.performJob(t, jobs[i], i%2 == 0)
	}
}

// performJob runs one job: the given one, or the one that the queue gives out. If the job fails
// and stays is true, it stays in the queue. Each job has the whole patience: a slow store with
// many jobs is no failure.
func (play *secretPlay) performJob(t testing.TB, job hook.Job, stays bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	claimer, ok := play.store.Queue.(hook.ClaimQueue)
	if !ok { // the queue has its own engine: perform the jobs here, which gives the same records
		job.Attempt = 1
		play.append(ctx, t, play.rt.Perform(ctx, job))
		return
	}
	job, err := claimer.Claim(ctx)
	if err != nil {
		t.Fatalf("hooktest: claim: %v", err)
	}
	play.queue.claimed = append(play.queue.claimed, job)
	run := play.rt.Perform(ctx, job)
	var again time.Time
	if run.State != hook.Completed && stays {
		again = time.Now().Add(time.Hour)
	}
	if err := claimer.Settle(ctx, job, run, again); err != nil {
		t.Fatalf("hooktest: settle: %v", err)
	}
}

func (play *secretPlay) append(ctx context.Context, t testing.TB, runs ...hook.Run) {
	t.Helper()
	if err := play.store.Journal.Append(ctx, runs); err != nil {
		t.Fatalf("hooktest: append: %v", err)
	}
}

// elsewhere performs background work in other runtimes, which cannot find its input.
func (play *secretPlay) elsewhere(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	for i, recall := range []func() (json.RawMessage, error){
		func() (json.RawMessage, error) { return nil, errors.New(secret("recall-error")) },
		func() (json.RawMessage, error) { return json.RawMessage(secret("recalled")), nil },
	} {
		rt := play.runtime(t, &hook.RuntimeOptions{
			Journal: play.store.Journal, Queue: play.queue,
			Recall: func(context.Context, string, string, hook.Scope) (json.RawMessage, error) { return recall() },
		})
		var runs []hook.Run
		for _, job := range play.queue.all() {
			if job.Handler == "" {
				job.Attempt = 100 + i
				runs = append(runs, rt.Perform(ctx, job))
			}
		}
		play.append(ctx, t, runs...)
	}
}

// search searches everything in the store. It returns each word that it found, with the
// first place where it is.
func (play *secretPlay) search(t testing.TB) map[string]string {
	t.Helper()
	found := make(map[string]string)
	look := func(where string, text []byte) {
		for _, word := range plantedWord.FindAll(text, -1) {
			if found[string(word)] == "" {
				found[string(word)] = where
			}
		}
	}
	if lister, ok := play.store.Journal.(hook.ListJournal); ok {
		for run, err := range lister.List(context.Background(), hook.Filter{}) {
			if err != nil {
				t.Fatalf("hooktest: list: %v", err)
			}
			look("the run "+run.String(), spelledOut(run))
		}
	} else if play.store.Dump == nil {
		t.Skip("hooktest: the journal is not a hook.ListJournal and there is no Dump, so there is nothing to search")
	}
	for _, job := range slices.Concat(play.queue.all(), play.queue.claimed) {
		look("the job "+job.ID, spelledOut(job))
	}
	if play.store.Dump != nil {
		dump, err := play.store.Dump()
		if err != nil {
			t.Fatalf("hooktest: dump: %v", err)
		}
		look("the dump", dump)
	}
	return found
}

// spelledOut returns a record as JSON, with the fields that JSON leaves out appended.
func spelledOut(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(err.Error())
	}
	if run, ok := v.(hook.Run); ok {
		for _, d := range run.Diagnostics {
			text = fmt.Appendf(text, "\n%v", d.Err)
		}
	}
	return text
}

// watchedQueue passes jobs on to a queue and remembers them.
type watchedQueue struct {
	hook.Queue
	claimed []hook.Job // used only by the test's goroutine

	mu   sync.Mutex
	jobs []hook.Job
}

func (q *watchedQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	if err := q.Queue.Enqueue(ctx, asked, jobs); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, jobs...)
	return nil
}

func (q *watchedQueue) all() []hook.Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.jobs)
}
