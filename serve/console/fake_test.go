package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/serve/console"
)

// fakeAPI answers the operations of the API with fixed data, so that a page can have any data.
type fakeAPI struct {
	self  api.Self
	hooks []api.HookLine
	plans []api.Plan
	nodes []api.GraphNode
	stats []api.HookStat
	trust []api.Trust
	runs  []hook.Run
	load  api.Workload
	jobs  []api.Job
	usage map[string]api.Usage // by the field by

	ran chan hook.Run // followers of runs get what the test sends

	mu    sync.Mutex
	asked []string // method, path and query of each request
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	f.mu.Unlock()
	q := r.URL.Query()
	switch path := r.URL.Path; {
	case path == "/v1/self":
		reply(w, f.self)
	case path == "/v1/approval-count":
		reply(w, api.ApprovalCount{})
	case path == "/v1/approvals":
		reply(w, api.ApprovalList{Approvals: []api.Approval{}})
	case path == "/v1/events", path == "/v1/runs/events":
		f.stream(w, r)
	case path == "/v1/sessions":
		reply(w, api.SessionList{Sessions: []api.Session{{ID: "s1", Labels: map[string]string{"team": "search"}}}})
	case path == "/v1/usage":
		reply(w, f.usage[q.Get("by")])
	case path == "/v1/runs":
		reply(w, api.RunList{Runs: f.runs})
	case strings.HasSuffix(path, "/explanation"):
		reply(w, api.Explanation{Explanation: hook.Explanation{Phase: "tool.pre", Kind: hook.Gate, Won: "no-prod", Entries: []hook.Explained{
			{Position: 1, ID: "redact", Asked: true, State: hook.Completed, Latency: hook.Latency(80 * time.Microsecond)},
			{Position: 2, ID: "no-prod", Asked: true, State: hook.Completed, Contributed: []string{"deny"}, Why: "production is closed on Fridays", Won: true, Latency: hook.Latency(4 * time.Millisecond)},
			{Position: 3, ID: "lint-all", Why: "a hook before it denied"},
		}}})
	case strings.Contains(path, "/runs/"):
		for i := range f.runs {
			if strings.HasSuffix(path, "/"+f.runs[i].ID) {
				reply(w, f.runs[i])
				return
			}
		}
		missing(w)
	case len(f.self.Labels) > 0: // what belongs to all tenants
		missing(w)
	case path == "/v1/hooks":
		reply(w, api.HookList{Hooks: f.hooks})
	case path == "/v1/hooks/plan":
		reply(w, api.PlanList{Plans: only(f.plans, q.Get("phase"))})
	case path == "/v1/hooks/graph":
		reply(w, api.Graph{Nodes: f.nodes, Edges: []api.GraphEdge{}})
	case path == "/v1/hooks/stats":
		reply(w, api.HookStatList{Hooks: f.stats, Since: time.Now().Add(-24 * time.Hour), Records: 1000})
	case path == "/v1/hooks/trust":
		reply(w, api.TrustList{Directories: f.trust})
	case path == "/v1/workers":
		reply(w, f.load)
	case path == "/v1/jobs":
		reply(w, api.JobList{Jobs: f.jobs})
	case strings.HasPrefix(path, "/v1/jobs/"):
		reply(w, api.Job{ID: "7", Kind: "index"})
	default:
		missing(w)
	}
}

// wasAsked reports whether the API got a request.
func (f *fakeAPI) wasAsked(request string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.asked, request)
}

// stream sends the runs of the test until the client leaves.
func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	var ran chan hook.Run
	if r.URL.Path == "/v1/runs/events" {
		ran = f.ran
	}
	for {
		select {
		case run := <-ran:
			data, err := json.Marshal(run)
			if err != nil {
				return // the test waits in vain, and fails
			}
			_, _ = io.WriteString(w, "event: run\ndata: "+string(data)+"\n\n")
		case <-r.Context().Done():
			return
		}
	}
}

func only(plans []api.Plan, phase string) []api.Plan {
	var some []api.Plan
	for i := range plans {
		if phase == "" || plans[i].Phase == phase {
			some = append(some, plans[i])
		}
	}
	return some
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err) // the data of a test is wrong
	}
}

func missing(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"status":404,"title":"Not found","detail":"there is no such resource"}`)
}

// visitor is a user who has logged in.
type visitor struct {
	t       *testing.T
	url     string
	cookies []*http.Cookie
	key     string
}

// listen serves the console over the data of a test, and returns its address.
func (f *fakeAPI) listen(t *testing.T) string {
	t.Helper()
	if f.self.Name == "" {
		f.self = api.Self{Name: "ann", Roles: []string{"admin"}}
	}
	c, err := console.New(f, &console.Options{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

// fakeWorld is a server over the data of a test, for a browser.
func fakeWorld(t *testing.T, f *fakeAPI) *world {
	t.Helper()
	return &world{t: t, url: f.listen(t), secret: map[string]string{"admin": "belay_secret"}}
}

func open(t *testing.T, f *fakeAPI) *visitor {
	t.Helper()
	b := &visitor{t: t, url: f.listen(t)}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/login", strings.NewReader(url.Values{"token": {"belay_secret"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	answer := struct {
		Key string `json:"key"`
	}{}
	response := b.do(request)
	if err := json.Unmarshal([]byte(response.body), &answer); err != nil || answer.Key == "" {
		t.Fatalf("log in: %v: %s", err, response.body)
	}
	b.cookies, b.key = response.cookies, answer.Key
	return b
}

// page is a response that was read to its end.
type page struct {
	status  int
	header  http.Header
	body    string
	cookies []*http.Cookie
}

func (b *visitor) do(request *http.Request) page {
	b.t.Helper()
	for _, c := range b.cookies {
		request.AddCookie(c)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var body strings.Builder
	if _, err := io.Copy(&body, response.Body); err != nil {
		b.t.Fatal(err)
	}
	return page{response.StatusCode, response.Header, body.String(), response.Cookies()}
}

// get loads a page.
func (b *visitor) get(path string) page {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	return b.do(request)
}

// press sends a form as htmx does.
func (b *visitor) press(path string, form url.Values) page {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Hx-Request", "true")
	request.Header.Set("Belay-Key", b.key)
	return b.do(request)
}
