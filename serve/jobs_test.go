package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// Jobs are listed with their state, and an admin can run one now or cancel it. A job that has
// succeeded, runs or does not exist is refused.
//
// SPEC V-02
func TestJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Workers = 0 }) // nobody runs the jobs
	queue := w.host.Store().(belay.JournalStore).Queue()
	later := time.Now().Add(time.Hour)
	for i := range 3 {
		job := hook.Job{
			Handler: fmt.Sprintf("test/handler-%d", i%2), Reference: "x", Key: fmt.Sprintf("key-%d", i), At: later, ID: fmt.Sprintf("job-%d", i), Scope: hook.Scope{Session: fmt.Sprintf("s%d", i), Turn: "t"},
		}
		run := hook.Run{ID: fmt.Sprintf("asks-%d", i), State: hook.Completed, Execution: hook.Blocking, Visibility: hook.VisibleInAudit, Started: time.Now(), Ended: time.Now()}
		if err := queue.Enqueue(context.Background(), run, []hook.Job{job}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query string) (out api.JobList) {
		w.call("admin", "GET", "/v1/jobs?"+query, nil, &out)
		return out
	}
	all := list("")
	if len(all.Jobs) != 3 || all.Jobs[0].Job != "job-2" || all.Jobs[0].State != "waiting" || all.Jobs[0].Attempt != 1 || all.Jobs[0].Kind != "test/handler-0" || all.Jobs[0].Session != "s2" {
		t.Fatalf("the jobs are %+v", all)
	}
	first := list("limit=2")
	if rest := list("limit=2&after=" + first.Next); len(first.Jobs) != 2 || len(rest.Jobs) != 1 || rest.Jobs[0].Job != "job-0" || rest.Next != "" {
		t.Errorf("the pages are %+v and %+v", first, rest)
	}
	for query, want := range map[string]int{"kind=test/handler-0": 2, "session=s1": 1, "state=waiting": 3, "state=running": 0, "state=waiting&kind=test/handler-1": 1} {
		if got := list(query); len(got.Jobs) != want {
			t.Errorf("%s finds %d jobs, want %d", query, len(got.Jobs), want)
		}
	}
	post := func(id, what string) *reply { return w.send("admin", "POST", "/v1/jobs/"+id+"/"+what, nil, nil) }
	cancelled := all.Jobs[1].ID
	var one api.Job
	if w.call("admin", "POST", "/v1/jobs/"+cancelled+"/cancel", nil, &one); one.State != "cancelled" || one.Ended.IsZero() {
		t.Errorf("the cancelled job is %+v", one)
	}
	if p := post(cancelled, "cancel").problem(t); p.Status != http.StatusConflict || p.Code != "job.state" {
		t.Errorf("a job is cancelled twice: %+v", p)
	}
	if w.call("admin", "POST", "/v1/jobs/"+cancelled+"/retry", nil, &one); one.State != "waiting" || one.ID == cancelled || one.Job != "job-1" || one.Attempt != 1 || one.Due.After(later.Add(-time.Minute)) {
		t.Errorf("the retried job is %+v", one)
	}
	if p := post(cancelled, "retry").problem(t); p.Status != http.StatusConflict || p.Code != "job.state" {
		t.Errorf("a job is retried while its next attempt waits: %+v", p)
	}
	waiting := all.Jobs[0].ID
	if w.call("admin", "POST", "/v1/jobs/"+waiting+"/retry", nil, &one); one.ID != waiting || one.Due.After(later.Add(-time.Minute)) {
		t.Errorf("a waiting job is not due now: %+v", one)
	}
	for _, id := range []string{"999999", "odd"} {
		if p := post(id, "retry").problem(t); p.Status != http.StatusNotFound {
			t.Errorf("job %s: %+v", id, p)
		}
	}
}
