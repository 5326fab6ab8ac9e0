package console

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// jobStates are the values of the filter.
var jobStates = []string{"waiting", "running", "failed", "cancelled", "completed"}

// jobFilter is what the user typed into the filter of the jobs.
type jobFilter struct{ State, Kind, Session, After string }

// path returns the address of the page with this filter.
func (f jobFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "kind": f.Kind, "session": f.Session, "after": f.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/jobs"
	}
	return "/jobs?" + q.Encode()
}

// from returns the filter that begins after a job.
func (f jobFilter) from(after string) jobFilter {
	f.After = after
	return f
}

// isSet reports whether the filter leaves something out.
func (f jobFilter) isSet() bool { return f.State+f.Kind+f.Session != "" }

// jobsView is what the page of jobs shows.
type jobsView struct {
	Filter jobFilter
	Load   api.Workload
	List   api.JobList
}

// jobsPage shows the queues, the processes and the jobs.
func jobsPage(ctx context.Context, v *visit) (templ.Component, error) {
	if v.isLimited() {
		return limitedPage(v, "Jobs", "/jobs", "Jobs and workers work for all tenants"), nil
	}
	b := jobsView{Filter: jobFilter{State: v.query("state"), Kind: v.query("kind"), Session: v.query("session"), After: v.query("after")}}
	var err error
	if b.Load, err = v.ReadWorkers(ctx); err != nil {
		return nil, err
	}
	if b.List, err = v.ListJobs(ctx, api.ListJobs{State: b.Filter.State, Kind: b.Filter.Kind, Session: b.Filter.Session, After: b.Filter.After, Limit: 50}); err != nil {
		return nil, err
	}
	return jobList(v, &b), nil
}

// retryJob runs a job now.
func retryJob(ctx context.Context, v *visit) error {
	job, err := v.RetryJob(ctx, v.r.PathValue("job"))
	if err != nil {
		return err
	}
	v.say(fmt.Sprintf("%s runs again now.", sentenceStart(job.Kind)))
	v.goTo(backTo(v.r.FormValue("back"), "/jobs"))
	return nil
}

// cancelJob cancels a job that waits.
func cancelJob(ctx context.Context, v *visit) error {
	job, err := v.CancelJob(ctx, v.r.PathValue("job"))
	if err != nil {
		return err
	}
	v.say(fmt.Sprintf("%s is cancelled.", sentenceStart(job.Kind)))
	v.goTo(backTo(v.r.FormValue("back"), "/jobs"))
	return nil
}

// sentenceStart names a job at the start of a sentence.
func sentenceStart(kind string) string {
	if kind == "" {
		return "The job"
	}
	return "The job " + kind
}

// backTo returns the address that a form came from, if it is the page or has a query of it.
func backTo(from, page string) string {
	if from == page || strings.HasPrefix(from, page+"?") {
		return from
	}
	return page
}

// jobTone returns the colour of the state of a job.
func jobTone(state string) string {
	switch state {
	case "running":
		return "run"
	case "waiting":
		return "wait"
	case "failed":
		return "bad"
	case "completed":
		return "good"
	default:
		return ""
	}
}

// mayRetry reports whether a job in this state can run again.
func mayRetry(state string) bool {
	return state == "waiting" || state == "failed" || state == "cancelled"
}

// retryName is the name of the button.
func retryName(state string) string {
	if state == "waiting" {
		return "Run now"
	}
	return "Retry"
}

// jobWhen says when a job ran, or when it will run.
func jobWhen(j *api.Job) (text string, at time.Time) {
	switch {
	case !j.Ended.IsZero():
		return "ended " + ago(j.Ended), j.Ended
	case !j.Started.IsZero():
		return "started " + ago(j.Started), j.Started
	case j.Due.After(time.Now()):
		return "due " + ago(j.Due), j.Due
	default:
		return "due since " + span(time.Since(j.Due)), j.Due
	}
}

// oldest says how long the oldest of a queue has waited, or "" if nothing waits.
func oldest(waiting int, age time.Duration) string {
	if waiting == 0 {
		return ""
	}
	return "oldest waits " + span(age)
}

// late reports whether a queue has waited so long that somebody should look.
func late(waiting int, age time.Duration) bool { return waiting > 0 && age > time.Minute }

// holderName names a process.
func holderName(h *belay.HolderLoad) string {
	return h.Host + " " + strconv.FormatInt(h.PID, 10)
}

// holderState says what a process is.
func holderState(h *belay.HolderLoad) (text, colour string) {
	switch {
	case h.Gone:
		return "gone", "bad"
	case len(h.Turns) > 0:
		return "working", "run"
	case h.Worker:
		return "waits for turns", "good"
	default:
		return "no worker", ""
	}
}
