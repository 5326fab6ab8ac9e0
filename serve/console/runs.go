package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// runStates are the values of the filter.
var runStates = []string{"completed", "failed", "timed_out", "interrupted", "skipped", "backgrounded", "started"}

// runFilter is what the user typed into the filter of the runs.
type runFilter struct {
	Session, Turn, Phase, Hook, State string
	Until                             string // only runs before this time
	All, Follow                       bool
}

// path returns the address of the page with this filter.
func (f runFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"session": f.Session, "turn": f.Turn, "phase": f.Phase, "hook": f.Hook, "state": f.State, "until": f.Until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.All {
		q.Set("all", "true")
	}
	if f.Follow {
		q.Set("follow", "true")
	}
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}

// following returns the filter with or without live changes. Live changes begin at the newest.
func (f runFilter) following(on bool) runFilter {
	f.Follow, f.Until = on, ""
	return f
}

// isSet reports whether the filter leaves something out.
func (f runFilter) isSet() bool { return f.Session+f.Turn+f.Phase+f.Hook+f.State != "" }

// live is the address of the stream of the page.
func (f runFilter) live() string {
	switch {
	case !f.Follow:
		return "/live"
	case f.All:
		return "/live?runs=all"
	default:
		return "/live?runs=shown"
	}
}

// runsView is what the page of runs shows.
type runsView struct {
	Filter runFilter
	Runs   []hook.Run
	Older  string // the address of older runs, or ""
	Phases []string
}

// runsPerPage is how many runs a page shows.
const runsPerPage = 100

// runsPage lists the records of hook runs.
func runsPage(ctx context.Context, v *visit) (templ.Component, error) {
	b := runsView{Filter: runFilter{
		Session: v.query("session"), Turn: v.query("turn"), Phase: v.query("phase"), Hook: v.query("hook"), State: v.query("state"),
		Until: v.query("until"), All: v.query("all") == "true", Follow: v.query("follow") == "true",
	}}
	f := &b.Filter
	in := api.ListRuns{Session: f.Session, Turn: f.Turn, Phase: f.Phase, Subscription: f.Hook, All: f.All, Limit: runsPerPage + 1}
	if f.State != "" {
		in.State = []string{f.State}
	}
	if f.Until != "" {
		until, err := time.Parse(time.RFC3339Nano, f.Until)
		if err != nil {
			return nil, &api.Problem{Status: http.StatusBadRequest, Title: "Bad address", Detail: "The address has a time that cannot be read: until=" + f.Until + ". Open the page of runs again."}
		}
		in.Until = until
	}
	list, err := v.ListRuns(ctx, in)
	if err != nil {
		return nil, err
	}
	b.Runs, b.Older = pageOfRuns(list.Runs, *f)
	b.Phases = phasesOf(b.Runs, f.Phase)
	return runList(v, &b), nil
}

// pageOfRuns returns the runs of one page, and the address of the next page. The next page
// begins with the time of the first run that is not shown: a run with the same time comes
// twice rather than never.
func pageOfRuns(all []hook.Run, f runFilter) (runs []hook.Run, older string) {
	if len(all) <= runsPerPage {
		return all, ""
	}
	f.Until, f.Follow = all[runsPerPage].Started.Add(time.Microsecond).UTC().Format(time.RFC3339Nano), false
	return all[:runsPerPage], f.path()
}

// phasesOf returns the phases of the runs, for the filter.
func phasesOf(all []hook.Run, chosen string) []string {
	seen := make(map[string]bool)
	var names []string
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	add(chosen)
	for i := range all {
		add(all[i].Phase)
	}
	return names
}

// runName returns the hook or the job handler of a run.
func runName(r *hook.Run) string { return cmp.Or(r.Subscription, r.JobHandler, r.ID) }

// runPath returns the address of a run.
func runPath(session, run string) string {
	return sessionPath(session) + "/runs/" + url.PathEscape(run)
}

// runTone returns the colour of the state of a run.
func runTone(s hook.State) string {
	switch s {
	case hook.Completed:
		return "good"
	case hook.Started:
		return "run"
	case hook.Backgrounded:
		return "wait"
	case hook.Failed, hook.TimedOut, hook.Interrupted:
		return "bad"
	case hook.Skipped:
		return ""
	default:
		return ""
	}
}

// runState returns the state of a run in words.
func runState(s hook.State) string { return strings.ReplaceAll(s.String(), "_", " ") }

// runSaid says in a few words what a run did.
func runSaid(r *hook.Run) string {
	var words []string
	if r.Severity > hook.SeverityPass {
		words = append(words, r.Severity.String())
	}
	for _, d := range r.Contributed {
		if len(words) == 0 || words[0] != d.Kind {
			words = append(words, d.Kind)
		}
	}
	if r.Class != "" {
		words = append(words, string(r.Class))
	}
	return strings.Join(words, ", ")
}

// saidTone returns the colour of what a run did.
func saidTone(r *hook.Run) string {
	switch {
	case r.Severity >= hook.SeverityDeny || r.Class != "":
		return "bad"
	case r.Severity == hook.SeverityAsk:
		return "warn"
	default:
		return ""
	}
}

// runView is what the page of one run shows.
type runView struct {
	Run       hook.Run
	Explained *api.Explanation
	// Unexplained says why there is no explanation.
	Unexplained string
}

// runPage shows the record of one run, and why its dispatch ended as it did.
func runPage(ctx context.Context, v *visit) (templ.Component, error) {
	session, id := v.r.PathValue("session"), v.r.PathValue("run")
	run, err := v.ReadRun(ctx, session, id)
	if err != nil {
		return nil, err
	}
	b := runView{Run: run}
	explained, err := v.ExplainRun(ctx, session, id)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status < http.StatusInternalServerError { // the run of a job has no dispatch
		b.Unexplained = p.Detail
	} else if err != nil {
		return nil, err
	} else {
		b.Explained = &explained
	}
	return runDetail(v, &b), nil
}
