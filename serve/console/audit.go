package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/serve/api"
)

// auditQuestion is a question of the audit page.
type auditQuestion struct {
	Name, Title string
	Asks        string // the question in words
	About       string // what is counted, in one or two sentences
}

// auditQuestions are the questions of the page. The page of usage answers what was spent.
var auditQuestions = []auditQuestion{
	{"denials", "Denials", "What was denied, by whom and why", "Reasons come from the transcripts, so they are gone when a session is deleted."},
	{"approvals", "Approvals", "Who decided, and how long it took", "The delay is the time from the question to the decision."},
	{"grants", "Grants", "Approvals that cover more than one call", "Only grants that are in force are listed."},
	{"slow", "Slow hooks", "Which hooks take the most time", "Each run of a hook counts, also those that changed nothing."},
	{"failures", "Failing hooks", "Which hooks fail", "Runs that failed, timed out or were interrupted are counted by the kind of error."},
	{"tools", "Tools", "Which tools were used, and how often they failed", "Denied calls count as calls."},
	{"touched", "Touched", "Files, hosts and commands that calls named", "What a command itself did is not recorded."},
}

// auditRanges are the numbers of days that the page offers.
var auditRanges = []int{1, 7, 30, 90}

// auditFilter is what the address of the audit page says.
type auditFilter struct {
	Question string
	Days     int
	Session  string
}

// path returns the address of the page with this filter.
func (f auditFilter) path() string {
	q := url.Values{}
	if f.Question != auditQuestions[0].Name {
		q.Set("question", f.Question)
	}
	if f.Days != auditRanges[1] {
		q.Set("days", strconv.Itoa(f.Days))
	}
	if f.Session != "" {
		q.Set("session", f.Session)
	}
	if len(q) == 0 {
		return "/audit"
	}
	return "/audit?" + q.Encode()
}

func (f auditFilter) of(days int) auditFilter {
	f.Days = days
	return f
}

func (f auditFilter) asking(question string) auditFilter {
	f.Question = question
	return f
}

func (f auditFilter) in(session string) auditFilter {
	f.Session = session
	return f
}

// auditView is what the audit page shows.
type auditView struct {
	Filter   auditFilter
	Question *auditQuestion
	Report   api.AuditReport
}

// audit answers a question about all sessions that the user may see.
func audit(ctx context.Context, v *visit) (templ.Component, error) {
	b := auditView{Filter: auditFilter{Question: auditQuestions[0].Name, Days: auditRanges[1], Session: v.query("session")}, Question: &auditQuestions[0]}
	if i := slices.IndexFunc(auditQuestions, func(q auditQuestion) bool { return q.Name == v.query("question") }); i >= 0 {
		b.Question = &auditQuestions[i]
		b.Filter.Question = b.Question.Name
	}
	if days, err := strconv.Atoi(v.query("days")); err == nil && slices.Contains(auditRanges, days) {
		b.Filter.Days = days
	}
	var err error
	b.Report, err = v.AskAudit(ctx, api.AskAudit{Question: b.Filter.Question, Session: b.Filter.Session, Since: daysAgo(b.Filter.Days), Limit: 200})
	return auditPage(v, &b), err
}

// daysAgo returns the time so many days ago.
func daysAgo(days int) time.Time { return time.Now().Add(-time.Duration(days) * 24 * time.Hour) }

// shownCell returns a cell of a report that is not a text.
func shownCell(kind, cell string) string {
	if cell == "" {
		return ""
	}
	switch kind {
	case "time":
		if at, err := time.Parse(time.RFC3339, cell); err == nil {
			return ago(at)
		}
	case "seconds":
		if n, err := strconv.ParseFloat(cell, 64); err == nil {
			return short(time.Duration(n * float64(time.Second)))
		}
	case "dollars":
		if n, err := strconv.ParseFloat(cell, 64); err == nil {
			return money(n)
		}
	default:
		if n, err := strconv.Atoi(cell); err == nil {
			return count(n)
		}
	}
	return cell
}
