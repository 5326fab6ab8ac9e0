package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/store/sqlite"
)

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this test program again to confine commands
	os.Exit(m.Run())
}

// patience is how long a test waits for something that must happen. It is long, because the
// machine may be busy.
const patience = 2 * time.Minute

// model is a model whose answer depends only on the transcript. The last user message says what
// to do, in lines:
//
//	think TEXT         thinks aloud
//	say TEXT           says something before a call, or as the answer
//	call TOOL INPUT    calls a tool, one in each step
//	slowly TEXT        sends the words of the text one by one, when the test lets it
//	fail TEXT          fails with this error
//	anything else      is what the user wants in words, and is ignored
type model struct {
	step    chan struct{}     // each value lets a slow model send a word
	scripts map[string]string // by user message: the lines, if they are not in the message itself
}

func (m *model) Info() belay.ModelInfo { return belay.ModelInfo{Name: "test/model"} }

// Stream implements belay.Model.
func (m *model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		task, steps := "", 0
		for _, said := range req.Messages {
			switch {
			case said.Kind == belay.KindUser:
				task, steps = said.Text(), 0
			case said.Role == belay.RoleAssistant:
				steps++
			}
		}
		if script, ok := m.scripts[task]; ok {
			task = script
		}
		answer := belay.Response{StopReason: belay.StopEnd, Usage: belay.Usage{In: 1840 + 400*steps, Out: 210, Cost: 0.0123}}
		n, said := 0, ""
		for line := range strings.Lines(task) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "think":
				answer.Parts = append(answer.Parts, belay.Part{Type: belay.PartThinking, Text: rest})
			case "say":
				said += strings.ReplaceAll(rest, `\n`, "\n") + "\n"
			case "fail":
				yield(belay.Chunk{}, errors.New(rest))
				return
			case "slowly":
				for part := range strings.SplitAfterSeq(rest, " ") {
					select {
					case <-m.step:
					case <-ctx.Done():
						yield(belay.Chunk{}, context.Cause(ctx))
						return
					}
					if !yield(belay.Chunk{Text: part}, nil) {
						return
					}
				}
				said += rest
			case "call":
				if n == steps {
					name, input, _ := strings.Cut(rest, " ")
					answer.StopReason = belay.StopToolUse
					answer.Parts = append(answer.Parts, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: fmt.Sprintf("c%d", steps), Tool: name, Input: json.RawMessage(input)}})
				}
				n++
			}
		}
		if answer.StopReason == belay.StopEnd {
			answer.Parts = append(answer.Parts, belay.Text(strings.TrimSpace(said+" Done.")))
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// world is a running server with its project.
type world struct {
	t      *testing.T
	dir    string
	url    string
	model  *model
	tokens *serve.Tokens
	secret map[string]string // by the name of the token
	addr   string
	start  func() (stop func())
	stop   func()
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

// newWorld starts a server over a project with these files. A name that begins with ~/ is in
// the user's directory of settings, whose hooks need no trust.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), model: &model{step: make(chan struct{})}, secret: make(map[string]string), addr: "127.0.0.1:0"}
	user := t.TempDir()
	for name, text := range files {
		if mine, ok := strings.CutPrefix(name, "~/"); ok {
			write(t, filepath.Join(user, "belay"), map[string]string{mine: text})
		} else {
			write(t, w.dir, map[string]string{name: text})
		}
	}
	// A project has a store already, because making one takes as long as most tests.
	if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, ".belay"), 0o700), os.Rename(newFile(t), filepath.Join(w.dir, ".belay", "belay.db"))); err != nil {
		t.Fatal(err)
	}
	w.tokens = serve.OpenTokens(filepath.Join(user, "belay", "tokens"))
	w.start = func() func() {
		h, err := host.Open(context.Background(), &host.Options{Dir: w.dir, UserDir: user, Environ: []string{}, Model: w.model, NoJobs: true, Settings: []host.Setting{{Path: "mode", Value: "strict"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Agent(context.Background(), host.Main); err != nil { // find mistakes first
			t.Fatal(err)
		}
		server, err := serve.New(h, &serve.Options{Tokens: w.tokens, Workers: 4, Grace: 2 * time.Second, TraceURL: "https://traces.example/{trace}"})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		w.addr = listener.Addr().String() // a restarted server has the same address
		w.url = "http://" + w.addr
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ctx, listener) }()
		return sync.OnceFunc(func() {
			stop()
			if err := errors.Join(<-ended, h.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	w.stop = w.start()
	t.Cleanup(func() { w.stop() })
	w.token("admin", serve.RoleAdmin)
	return w
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// token makes a token.
func (w *world) token(name string, roles ...serve.Role) {
	w.t.Helper()
	secret, err := w.tokens.Create(name, roles, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.secret[name] = secret
}

// client returns a client with a token.
func (w *world) client(name string) *client.Client { //nolint:unparam // tests of tenants need others
	w.t.Helper()
	c, err := client.New(w.url, w.secret[name], nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// session creates a session with a title.
func (w *world) session(title string, labels map[string]string) string {
	w.t.Helper()
	s, err := w.client("admin").CreateSession(w.t.Context(), api.CreateSession{Title: title, Labels: labels})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.ID
}

// turn runs a turn until it has ended or is parked.
func (w *world) turn(session, text string) *api.TurnResult {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	started, err := w.client("admin").StartTurn(ctx, api.StartTurn{Session: session, Text: text, Wait: api.WaitEnd})
	if err != nil || started.Result == nil {
		state, _ := w.client("admin").ReadSession(context.WithoutCancel(ctx), session) // for the message
		w.t.Fatalf("the turn ends with %+v, %v, and the session is %+v", started, err, state)
	}
	return started.Result
}

// browser is a tab of a real Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it
	w   *world

	mu     sync.Mutex
	faults []string // errors of the page, and requests to other servers
}

// chromium is the browser that all tests share. Each test has a profile of its own.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("install the Debian package chromium (make tools-install does): %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator) // it ends with the test program
	return ctx, chromedp.Do(ctx)
})

// open opens a tab with a profile of its own, and logs in as a token. Width is in pixels.
func (w *world) open(as string, width int) *browser {
	w.t.Helper()
	parent, err := chromium()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	b := &browser{t: w.t, ctx: ctx, w: w}
	var watching sync.WaitGroup
	w.t.Cleanup(func() { cancel(); watching.Wait(); b.check() })
	watch(b, &watching, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) string { return "exception: " + e.ExceptionDetails.Text })
	watch(b, &watching, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) string {
		if e.Type != runtime.ConsoleAPICalledTypeError {
			return ""
		}
		return fmt.Sprintf("console error: %v", e.Args)
	})
	watch(b, &watching, log.EntryAdded, func(e log.EventEntryAdded) string {
		if e.Entry.Level != log.EntryLevelError || strings.Contains(e.Entry.Text, "ERR_CONNECTION") || strings.Contains(e.Entry.Text, "ERR_EMPTY_RESPONSE") || strings.Contains(e.Entry.Text, "ERR_INCOMPLETE") {
			return "" // a test stops the server
		}
		if strings.Contains(e.Entry.Text, "status of 403") || strings.Contains(e.Entry.Text, "status of 422") {
			return "" // a test does what the server refuses, and looks at the notice
		}
		return "log: " + e.Entry.Text
	})
	watch(b, &watching, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) string {
		if u := e.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "chrome") {
			return "request to another server: " + u
		}
		return ""
	})
	b.run(chromedp.EmulateViewport(int64(width), 900))
	for _, err := range []error{enable(ctx, network.Enable), enable(ctx, runtime.Enable), enable(ctx, log.Enable)} {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: clicks}); err != nil {
		w.t.Fatal(err)
	}
	if as != "" {
		b.run(chromedp.Navigate(w.url+"/login#"+w.secret[as]), chromedp.WaitVisible(chromedp.CSS("#pages")))
	}
	return b
}

// enable turns on the events of a domain.
func enable[P, R any](ctx context.Context, command cdp.Command[P, R]) error {
	var none P
	_, err := chromedp.Call(ctx, command, none)
	return err
}

// watch collects what must not happen in a page.
func watch[E any](b *browser, watching *sync.WaitGroup, kind cdp.Event[E], fault func(E) string) {
	events := chromedp.Events(b.ctx, kind)
	watching.Go(func() { // ends with the tab
		for e, err := range events {
			if err != nil {
				return
			}
			if text := fault(e); text != "" {
				b.mu.Lock()
				b.faults = append(b.faults, text)
				b.mu.Unlock()
			}
		}
	})
}

// check fails the test if the page had errors.
func (b *browser) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Error(f)
	}
}

// run runs actions within the patience of the test.
func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
}

// visit opens a page and waits until its stream is connected.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.w.url+path), chromedp.WaitVisible(chromedp.CSS("body[data-connected]")))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("the browser: %s: %v", expression, err)
	}
	return value
}

// text returns the text of an element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%s)?.innerText || ''", quote(selector)))
}

// waitText waits until an element is visible and has a text.
func (b *browser) waitText(selector, text string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("((e) => e?.checkVisibility() && e.innerText.includes(%s))(document.querySelector(%s))", quote(text), quote(selector)), selector+" shows "+text)
}

// waitFor waits until an expression is true.
func (b *browser) waitFor(expression, what string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return
		}
		if isFinal(ctx, err) {
			b.t.Fatalf("the page does not get there: %s: %v\n%s", what, err, b.text("body"))
		}
	}
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// click clicks an element. A live change of the page may move or replace the element just before:
// then something else got the click, or nothing, and click tries again.
func (b *browser) click(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.keep(ctx, "wanted", selector)
	for {
		err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector)))
		switch {
		case err == nil && b.kept(ctx, "wanted") == "":
			return
		case err != nil && (ctx.Err() != nil || !strings.Contains(err.Error(), "Could not find node")):
			b.t.Fatalf("the browser: click %s: %v", selector, err)
		}
	}
}

// clicks runs in every page, and notes that the element that is wanted was clicked.
const clicks = `document.addEventListener("click", e => {
	if (sessionStorage.wanted && e.isTrusted && e.target.closest(sessionStorage.wanted)) sessionStorage.wanted = ""
}, {capture: true})`

// keep keeps a value in the tab, also while it goes to another page, and kept returns it.
func (b *browser) keep(ctx context.Context, name, value string) {
	b.t.Helper()
	b.inSomePage(ctx, fmt.Sprintf("sessionStorage[%s] = %s", quote(name), quote(value)))
}

func (b *browser) kept(ctx context.Context, name string) string {
	b.t.Helper()
	return b.inSomePage(ctx, fmt.Sprintf("sessionStorage[%s]", quote(name)))
}

// inSomePage evaluates a text in the page, or in the one that takes its place meanwhile.
func (b *browser) inSomePage(ctx context.Context, expression string) string {
	b.t.Helper()
	for {
		value, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
		if err == nil {
			return value
		}
		if isFinal(ctx, err) {
			b.t.Fatalf("the browser: %s: %v", expression, err)
		}
	}
}

// isFinal reports whether an error is not that another page took the place of the page.
func isFinal(ctx context.Context, err error) bool {
	text := err.Error()
	return ctx.Err() != nil || !strings.Contains(text, "context") && !strings.Contains(text, "navigated")
}

// key presses a key. The browser makes the character from it, unless the page prevents that.
func (b *browser) key(key string) {
	b.t.Helper()
	if len(key) > 1 || key < " " {
		b.run(chromedp.KeyEvent(key))
		return
	}
	for _, params := range []input.DispatchKeyEventParams{{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}, {Type: input.DispatchKeyEventTypeKeyUp, Key: key}} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, params); err != nil {
			b.t.Fatal(err)
		}
	}
}

// get sends a request of a browser without JavaScript.
func (w *world) get(path string, cookie *http.Cookie) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	return w.do(r)
}

// answer is a response that was read to its end.
type answer struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    string
}

// do sends a request, and follows no redirect.
func (w *world) do(r *http.Request) *answer {
	w.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return &answer{resp.StatusCode, resp.Header, resp.Cookies(), string(data)}
}

// field returns a field of a JSON object.
func field(t *testing.T, text, name string) string {
	t.Helper()
	var object map[string]string
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object[name]
}

// scheme makes the browser prefer light or dark pages.
func (b *browser) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// evalPromise returns the value of a promise.
func evalPromise[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	return value
}
