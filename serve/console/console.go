package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/serve/api"
)

// Options are the settings of the console.
type Options struct {
	// Key encrypts the cookie that holds the token of a user. All servers of one address need
	// the same key. It has 32 bytes and is required.
	Key []byte
	// Draining ends when the server stops. Then the streams of the pages end, and the browsers
	// connect again later. Defaults to a context that does not end.
	Draining context.Context //nolint:containedctx // it is a signal
	// TraceURL is the address of the page that shows a trace. {trace} in it stands for the id of
	// the trace. Defaults to none: turns have no link to their trace.
	TraceURL string
	// Logger gets errors that are not the fault of a user. By default they are discarded.
	Logger *slog.Logger
}

// Console serves the pages.
type Console struct {
	draining context.Context //nolint:containedctx // it ends when the server stops

	api      http.Handler
	seal     *seal
	log      *slog.Logger
	mux      *http.ServeMux
	traceURL string
}

//go:embed assets/console.css assets/pages.css assets/console.js assets/htmx.min.js assets/icon.svg
var assets embed.FS

// headers of every page. The browser runs and loads only what comes from this server.
var headers = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
	"Cache-Control":           {"no-store"},
	"Referrer-Policy":         {"same-origin"},
	"X-Content-Type-Options":  {"nosniff"},
	"X-Frame-Options":         {"DENY"},
}

// New returns the console for the handler of an API.
func New(apiHandler http.Handler, opts *Options) (*Console, error) {
	if apiHandler == nil || opts == nil {
		return nil, errors.New("new console: the handler of the API or the options are nil: set both")
	}
	seal, err := newSeal(opts.Key)
	if err != nil {
		return nil, err
	}
	c := &Console{api: apiHandler, seal: seal, log: opts.Logger, mux: http.NewServeMux(), traceURL: opts.TraceURL}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.draining = opts.Draining; c.draining == nil {
		c.draining = context.Background()
	}
	c.routes()
	return c, nil
}

// routes fills the table of pages.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /assets/{file}", serveAsset)
	c.mux.HandleFunc("GET /login", c.loginPage)
	c.mux.HandleFunc("POST /login", c.login)
	c.mux.HandleFunc("POST /logout", logout)
	c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/approvals", http.StatusSeeOther) })

	c.page("GET /approvals", inbox)
	c.page("GET /approvals/{approval}", inbox)
	c.act("POST /approvals/{approval}", decide)
	c.page("GET /sessions", sessionsPage)
	c.act("POST /sessions", startSession)
	c.page("GET /sessions/{session}", conversation)
	c.act("POST /sessions/{session}/turns", sendMessage)
	c.act("POST /sessions/{session}/abort", abortTurn)
	c.act("POST /sessions/{session}/queue/{turn}/withdraw", withdrawTurn)
	c.act("POST /sessions/{session}/grants/{grant}/revoke", revokeGrant)
	c.act("POST /sessions/{session}/fork", forkSession)
	c.page("GET /sessions/{session}/runs/{run}", runPage)
	c.mux.HandleFunc("GET /sessions/{session}/messages/{message}/media/{media}", func(w http.ResponseWriter, r *http.Request) {
		if v := c.enter(w, r); v != nil {
			if err := sendMedia(r.Context(), v); err != nil {
				http.Error(w, sentence(v.problem(err).Detail), v.problem(err).Status)
			}
		}
	})
	c.page("GET /new", newPage)
	c.page("GET /hooks", hooksPage)
	c.page("GET /runs", runsPage)
	c.page("GET /jobs", jobsPage)
	c.act("POST /jobs/{job}/retry", retryJob)
	c.act("POST /jobs/{job}/cancel", cancelJob)
	c.page("GET /usage", usagePage)
	c.page("GET /audit", audit)
	c.page("GET /backtest", backtests)
	c.act("POST /backtest", runBacktest)
	c.mux.HandleFunc("GET /live", c.live)
	c.page("GET /", func(_ context.Context, v *visit) (templ.Component, error) {
		return nil, &api.Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "There is no page " + v.r.URL.Path + "."}
	})
}

// Handles reports whether a request is for the console: it has an address of the console, or
// comes from a browser that wants a page.
func (c *Console) Handles(r *http.Request) bool {
	_, pattern := c.mux.Handler(r)
	return pattern != "" && pattern != "GET /" || strings.Contains(r.Header.Get("Accept"), "text/html")
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), headers)
	c.mux.ServeHTTP(w, r)
}

// visit is a request of a user who has logged in.
type visit struct {
	*client.Client

	console *Console
	w       http.ResponseWriter
	r       *http.Request
	self    api.Self
	waiting int // how many approvals and questions wait
}

// may reports whether the user's token has a role.
func (v *visit) may(role string) bool {
	for _, has := range v.self.Roles {
		if has == role || has == "admin" {
			return true
		}
	}
	return false
}

// query returns a value of the address.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// enter finds the token of a request. Without one it sends the user to the login page, and
// returns nil.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) *visit {
	secret, ok := c.seal.token(r)
	if ok {
		if api, err := c.client(r, secret); err == nil {
			return &visit{Client: api, console: c, w: w, r: r}
		}
	}
	to := "/login"
	if r.Method == http.MethodGet && r.URL.Path != "/approvals" && r.URL.Path != "/live" {
		to += "?" + loginQuery(r.URL.RequestURI())
	}
	if r.Header.Get("Hx-Request") != "" {
		w.Header().Set("Hx-Redirect", to) // htmx must load the whole page
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// page adds a page for users who have logged in.
func (c *Console) page(pattern string, build func(context.Context, *visit) (templ.Component, error)) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := c.enter(w, r)
		if v == nil {
			return
		}
		ctx := r.Context()
		var err error
		if v.self, err = v.ReadSelf(ctx); err != nil {
			v.fail(err)
			return
		}
		count, err := v.CountApprovals(ctx)
		if err != nil {
			v.fail(err)
			return
		}
		v.waiting = count.Waiting
		body, err := build(ctx, v)
		if err != nil {
			v.fail(err)
			return
		}
		v.show(http.StatusOK, body)
	})
}

// act adds an action. The request needs the key that only pages of this origin know: see seal.
func (c *Console) act(pattern string, do func(context.Context, *visit) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := c.enter(w, r)
		if v == nil {
			return
		}
		if !c.seal.mayAct(r) {
			v.failNotice(&api.Problem{Status: http.StatusForbidden, Detail: "This page cannot act for you: log out, and log in again. JavaScript must be on."})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := do(r.Context(), v); err != nil {
			v.failNotice(err)
		}
	})
}

// mostForm is the maximum size of a form with its files. As JSON in base64 they are a third
// larger, and the API takes 16 MiB of it by default.
const mostForm = 12 << 20

// show renders a page. It renders into memory first, so that an error leaves no half page.
func (v *visit) show(status int, body templ.Component) {
	var b bytes.Buffer
	if err := body.Render(v.r.Context(), &b); err != nil {
		v.console.log.ErrorContext(v.r.Context(), "cannot render a page", "path", v.r.URL.Path, "error", err)
		http.Error(v.w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // ignore errors: the browser has left
}

// fail shows an error as a page.
func (v *visit) fail(err error) {
	p := v.problem(err)
	if p.Status == http.StatusUnauthorized { // the token was revoked or rotated
		forget(v.w, v.r)
		v.show(http.StatusUnauthorized, login(loginView{Problem: "Your token is no longer valid. " + sentence(p.Detail), Next: v.r.URL.RequestURI()}))
		return
	}
	v.show(p.Status, problemPage(v, p))
}

// failNotice shows an error of an action in the notice of the page, and leaves the page as it is.
func (v *visit) failNotice(err error) {
	p := v.problem(err)
	v.w.Header().Set("Hx-Retarget", "#notice")
	v.w.Header().Set("Hx-Reswap", "outerHTML")
	v.w.Header().Set("Hx-Reselect", "#notice") // forms select #main, which a notice does not have
	v.show(p.Status, notice(sentence(p.Detail), "bad"))
}

// problem returns an error as a problem document.
func (v *visit) problem(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &api.Problem{Status: http.StatusRequestEntityTooLarge, Title: "Too large", Detail: "The files are larger than 12 MB together: send fewer or smaller files."}
	}
	v.console.log.ErrorContext(v.r.Context(), "the console failed", "path", v.r.URL.Path, "error", err)
	return &api.Problem{Status: http.StatusInternalServerError, Title: "The server failed", Detail: "The page cannot be shown. The log of the server has the reason."}
}

// goTo tells the browser to load another page.
func (v *visit) goTo(path string) {
	if v.r.Header.Get("Hx-Request") == "" {
		http.Redirect(v.w, v.r, path, http.StatusSeeOther) //nolint:gosec // callers pass pages of the console
		return
	}
	to, err := json.Marshal(map[string]string{"path": path, "target": "#main", "select": "#main", "swap": "outerHTML"})
	if err != nil {
		to = []byte(path)
	}
	v.w.Header().Set("Hx-Location", ascii(to))
	v.w.WriteHeader(http.StatusNoContent)
}

// say makes console.js show a text when the next page is there.
func (v *visit) say(text string) {
	said, err := json.Marshal(map[string]string{"belay:said": text})
	if err == nil {
		v.w.Header().Set("Hx-Trigger", ascii(said))
	}
}

// ascii returns JSON without characters that a header cannot have.
func ascii(data []byte) string {
	var b strings.Builder
	for _, r := range string(data) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}

// serveAsset serves the files of the console. Their addresses have the version of the binary's content, so
// that browsers keep them.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(assets, "assets/"+r.PathValue("file"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	kind := "text/javascript; charset=utf-8"
	switch {
	case strings.HasSuffix(r.URL.Path, ".css"):
		kind = "text/css; charset=utf-8"
	case strings.HasSuffix(r.URL.Path, ".svg"):
		kind = "image/svg+xml"
	}
	w.Header().Set("Content-Type", kind)
	if r.URL.Query().Get("v") != "" {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(data) //nolint:gosec // it is a file of the binary; ignore errors: the browser has left
}
