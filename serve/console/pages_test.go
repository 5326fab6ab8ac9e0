package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// names returns the first links of the rows of the table in a part of a page.
func names(t *testing.T, p page, from string) []string {
	t.Helper()
	_, part, ok := strings.Cut(p.body, from)
	if !ok {
		t.Fatalf("the page has no %s:\n%s", from, p.body)
	}
	var all []string
	for _, m := range regexp.MustCompile(`<td class="name"><a href="[^"]*">([^<]*)</a>`).FindAllStringSubmatch(part, -1) {
		all = append(all, m[1])
	}
	return all
}

// has fails unless the page is there and has all texts.
func (p page) has(t *testing.T, texts ...string) {
	t.Helper()
	if p.status != http.StatusOK {
		t.Errorf("status %d", p.status)
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("the page lacks %q:\n%s", text, p.body)
		}
	}
}

// The slowest hook must be two clicks away: the page, and the order by p99.
func TestHooksSorted(t *testing.T) {
	t.Parallel()
	b := open(t, sample())
	first := b.get("/hooks")
	first.has(t, `href="/hooks?sort=p99#all"`, `href="/hooks?sort=failures#all"`)
	for order, want := range map[string]string{
		"":         "house-rules redact paths",
		"p99":      "lint-all index secrets-scan",
		"failures": "lint-all index secrets-scan",
		"denials":  "paths no-prod lint-all",
		"runs":     "redact paths no-prod",
	} {
		if got := strings.Join(names(t, b.get("/hooks?sort="+order), `id="all"`)[:3], " "); got != want {
			t.Errorf("sorted by %q the hooks begin with %s, want %s", order, got, want)
		}
	}
}

// SPEC G-04
func TestHookDetail(t *testing.T) {
	t.Parallel()
	b := open(t, sample())
	b.get("/hooks?phase=tool.pre&hook=lint-all").has(t, "Priority 0, then id.", ".belay/hooks/lint-all.yaml:1", "at most 5s", "closed: a gate denies", "19 %", "4.80 s", "640 ms", `href="/sessions/s1/runs/r-lint-all"`)
	b.get("/hooks?phase=tool.pre&hook=payments-gate").has(t, "Its directory has changed since it was trusted: it denies everything.", "belay trust")
	b.get("/hooks?phase=tool.pre&hook=review").has(t, "8 of its runs do not stop.")
	b.get("/hooks?phase=turn.end&hook=index").has(t, "did you mean")
}

func TestHooksOfOnePhase(t *testing.T) {
	t.Parallel()
	p := open(t, sample()).get("/hooks?phase=turn.end")
	if got := strings.Join(names(t, p, `id="all"`), " "); got != "notify index" {
		t.Errorf("the table has %s, want only the hooks of the phase", got)
	}
	if strings.Contains(p.body, `id="phase-tool.pre"`) {
		t.Error("the page draws another phase")
	}
}

func TestTrustedDirectories(t *testing.T) {
	t.Parallel()
	f := sample()
	f.trust = append(f.trust, api.Trust{Dir: "/srv/my shop", State: "directory missing"})
	open(t, f).get("/hooks").has(t, "belay trust /srv/shop/.belay", "timeout: 50s", "2 trusted directories need attention", "belay trust &#39;/srv/my shop&#39; --forget")
}

// A token with labels gets 404 from operations that show things of all tenants. The page says
// so, and asks for nothing.
func TestPagesOfAllTenantsAreClosedForATenant(t *testing.T) {
	t.Parallel()
	f := sample()
	f.self = api.Self{Name: "bob", Roles: []string{"admin"}, Labels: map[string]string{"team": "search"}}
	b := open(t, f)
	for _, path := range []string{"/hooks", "/jobs"} {
		b.get(path).has(t, "Your token sees the sessions of one tenant only")
	}
	for _, path := range []string{"/runs", "/usage"} {
		if p := b.get(path); p.status != http.StatusOK || strings.Contains(p.body, "one tenant only") {
			t.Errorf("%s is closed for a tenant: status %d", path, p.status)
		}
	}
}

func TestEmptyPagesSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := open(t, &fakeAPI{})
	b.get("/hooks").has(t, "There are no hooks yet.", "belay hooks new", "belay trust")
	b.get("/runs").has(t, "There is nothing to show.", `href="/runs?all=true"`)
	b.get("/runs?all=true").has(t, "No hook has run yet.")
	b.get("/runs?state=failed").has(t, "No run matches.")
	b.get("/jobs").has(t, "There are no jobs yet.")
	b.get("/jobs?state=failed").has(t, "No job matches.")
	b.get("/usage").has(t, "Nothing was used in the last 30 days.", `href="/usage?days=90"`)
}

func TestRunsFilter(t *testing.T) {
	t.Parallel()
	f := sample()
	b := open(t, f)
	b.get("/runs?hook=no-prod&phase=tool.pre&state=failed&session=s1&all=true").has(t, `value="no-prod"`, `<option value="failed" selected>`)
	last := ""
	for _, asked := range f.asked {
		if strings.HasPrefix(asked, "GET /v1/runs?") {
			last = asked
		}
	}
	sent, err := url.ParseQuery(strings.TrimPrefix(last, "GET /v1/runs?"))
	if err != nil || sent.Get("subscription") != "no-prod" || sent.Get("phase") != "tool.pre" || sent.Get("state") != "failed" || sent.Get("session") != "s1" || sent.Get("all") != "true" {
		t.Errorf("the page asked for %q: %v", last, err)
	}
	if p := b.get("/runs?until=yesterday"); p.status != http.StatusBadRequest || !strings.Contains(p.body, "until=yesterday") {
		t.Errorf("a bad time has the status %d", p.status)
	}
}

func TestRunsHavePages(t *testing.T) {
	t.Parallel()
	f := &fakeAPI{}
	begin := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	for i := range 101 {
		f.runs = append(f.runs, hook.Run{ID: fmt.Sprint("r", i), Subscription: fmt.Sprint("h", i), State: hook.Completed, Scope: hook.Scope{Session: "a/b"}, Started: begin.Add(-time.Duration(i) * time.Second)})
	}
	p := open(t, f).get("/runs")
	if got := names(t, p, `id="runs"`); len(got) != 100 || got[0] != "h0" {
		t.Errorf("the page has %d runs, want 100", len(got))
	}
	// The next page begins with the run that this page does not show: the API returns runs
	// before a time.
	p.has(t, `href="/runs?until=2026-11-18T11%3A58%3A20.000001Z"`, `href="/sessions/a%2Fb/runs/r0"`)
}

func TestRunPage(t *testing.T) {
	t.Parallel()
	b := open(t, sample())
	b.get("/sessions/main%2Fsub/runs/r2").has(t, "The answer of <b>no-prod</b> won.", "prod.friday", "41 bytes", `href="/sessions/main%2Fsub?bar=r2&amp;turn=t1"`, `href="/hooks?hook=no-prod&amp;phase=tool.pre#hook"`)
	if p := b.get("/sessions/main%2Fsub/runs/none"); p.status != http.StatusNotFound {
		t.Errorf("a run that does not exist has the status %d", p.status)
	}
}

// A page that follows runs gets news when a hook has run.
func TestRunsFollowLive(t *testing.T) {
	t.Parallel()
	f := sample()
	f.ran = make(chan hook.Run)
	b := open(t, f)
	b.get("/runs?follow=true&all=true").has(t, `data-live="/live?runs=all"`, `data-part="runs"`)
	b.get("/runs").has(t, `data-live="/live"`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the news must come
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/live?runs=all", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.cookies {
		request.AddCookie(c)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for range 2 { // the second comes too, after a pause
		select {
		case f.ran <- f.runs[0]:
		case <-ctx.Done():
			t.Fatal("nobody follows the runs")
		}
		for lines.Text() != `data: {"what":"runs"}` {
			if !lines.Scan() {
				t.Fatalf("the stream ended: %v", lines.Err())
			}
		}
		lines.Scan() // the empty line after it
	}
}

func TestJobsPage(t *testing.T) {
	t.Parallel()
	f := sample()
	b := open(t, f)
	b.get("/jobs?state=waiting").has(t, "oldest waits 4 min", "of 8 at the same time", "web-1 4211", "The process has ended. Others take over its turns.", "The provider does not answer.",
		`hx-post="/jobs/70/cancel"`, `hx-post="/jobs/70/retry"`, `hx-post="/jobs/67/retry"`, `name="back" value="/jobs?state=waiting"`)
	p := b.get("/jobs")
	for _, never := range []string{`hx-post="/jobs/69/`, `hx-post="/jobs/66/`, `hx-post="/jobs/67/cancel"`} {
		if strings.Contains(p.body, never) {
			t.Errorf("the page offers what cannot be done: %s", never)
		}
	}
	for act, said := range map[string]string{"retry": "The job index runs again now.", "cancel": "The job index is cancelled."} {
		done := b.press("/jobs/70/"+act, url.Values{"back": {"/jobs?state=waiting"}})
		if !strings.Contains(done.header.Get("Hx-Trigger"), said) || !strings.Contains(done.header.Get("Hx-Location"), "/jobs?state=waiting") {
			t.Errorf("%s: %d %v", act, done.status, done.header)
		}
		if last := f.asked[len(f.asked)-1]; last != "POST /v1/jobs/70/"+act {
			t.Errorf("%s asked the API for %s", act, last)
		}
	}
	if done := b.press("/jobs/70/retry", url.Values{"back": {"https://evil.example/jobs"}}); strings.Contains(done.header.Get("Hx-Location"), "evil") {
		t.Error("a form may send the browser to another server")
	}
}

func TestUsagePage(t *testing.T) {
	t.Parallel()
	f := sample()
	b := open(t, f)
	p := b.get("/usage?days=7&by=team")
	p.has(t, "By agent", "By model", "By label team", "without the label", "anthropic/claude-sonnet", `href="/usage?by=team"`, `href="/usage?by=team&amp;days=90"`)
	if bars := strings.Count(p.body, `class="value cost"`); bars != 7 {
		t.Errorf("%d bars, want one for each of 7 days", bars)
	}
	if strings.Index(p.body, "claude-sonnet") > strings.Index(p.body, "claude-haiku") {
		t.Error("the model with the higher cost must come first")
	}
	since := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -6).Format(time.RFC3339)
	if asked := strings.Join(f.asked, "\n"); !strings.Contains(asked, "since="+url.QueryEscape(since)) {
		t.Errorf("the page did not ask for the days since %s:\n%s", since, asked)
	}
}

// The browser refuses styles and scripts inside the page.
func TestPagesHaveNoInlineStyleOrScript(t *testing.T) {
	t.Parallel()
	b := open(t, sample())
	inline := regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|<style|<script>|javascript:`)
	for _, path := range []string{"/hooks", "/hooks?phase=tool.pre&hook=lint-all", "/runs", "/sessions/main%2Fsub/runs/r2", "/jobs", "/usage"} {
		if found := inline.FindString(b.get(path).body); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}
