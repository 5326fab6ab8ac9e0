package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// serveVariable is an environment variable. If it is set, the test binary runs the
// program itself instead of the tests.
const serveVariable = "EXAMPLE_HTTP_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the service on loopback with the given model. stop ends the service in the
// same way as SIGTERM.
func start(t *testing.T, file string, model belay.Model) (address string, stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, file, model) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return "http://" + listener.Addr().String(), stop
}

// send makes a request of a user.
func send(ctx context.Context, user, method, url, body string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header
	}
	request.SetBasicAuth(user, map[string]string{"ann": "apple", "bob": "pear"}[user])
	return http.DefaultClient.Do(request)
}

// ask makes a request and returns the status and the body of the response.
func ask(t *testing.T, user, method, url, body string) (int, string) {
	t.Helper()
	response, err := send(t.Context(), user, method, url, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(data))
}

// watch reads the event stream after the event with the given id. It yields the id and
// the event. Leaving the loop closes the connection.
func watch(t *testing.T, user, url, after string) func(yield func(string, belay.Event) bool) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	header := http.Header{}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	response, err := send(ctx, user, http.MethodGet, url, "", header) //nolint:bodyclose // the function below closes it
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the status of the event stream is %s", response.Status)
	}
	return func(yield func(string, belay.Event) bool) {
		defer cut()
		defer func() { _ = response.Body.Close() }()
		id := ""
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var event belay.Event
				if err := json.Unmarshal([]byte(data), &event); err != nil {
					t.Errorf("the data of an event is %q: %v", data, err)
					return
				}
				if !yield(id, event) {
					return
				}
			}
		}
	}
}

// answerOf returns the status, the end reason of the turn and its text, as one string.
func answerOf(status int, body string) string {
	var turn belay.Turn
	if err := json.Unmarshal([]byte(body), &turn); err != nil {
		return fmt.Sprint(status, " ", body)
	}
	return fmt.Sprint(status, " ", turn.Reason, " ", turn.Text)
}

// shown returns an event in the form that the tests compare. It reports false for other
// events, such as deltas: a new connection does not get these again.
func shown(event belay.Event) (string, bool) {
	switch event.Kind {
	case belay.EventTurnStart, belay.EventModelResponse:
		return fmt.Sprintf("%s %q", event.Kind, event.Message.Text()), true
	case belay.EventToolUse, belay.EventToolUseResult:
		return fmt.Sprintf("%s %s", event.Kind, event.Call.Tool), true
	case belay.EventTurnEnd:
		return fmt.Sprintf("%s %s", event.Kind, event.End.Reason), true
	default:
		return "", false
	}
}

// script is the model of the tests: it calls the tool clock twice, and then repeats what
// the user said. If wait is not nil, it calls wait before the second answer.
func script(wait func(ctx context.Context)) *scripted.Model {
	return scripted.New([]scripted.Step{{Compute: func(ctx context.Context, req *belay.Request) (scripted.Step, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Kind == belay.KindUser {
			return scripted.Step{Text: "Wait.", Calls: []scripted.Call{{Tool: "clock"}, {Tool: "clock", Input: `{"zone": "Asia/Tokyo"}`}}}, nil
		}
		if wait != nil {
			wait(ctx)
		}
		for _, m := range slices.Backward(req.Messages) {
			if m.Kind == belay.KindUser {
				return scripted.Step{Text: "You said " + m.Text() + "."}, nil
			}
		}
		return scripted.Step{}, errors.New("there is no message of the user")
	}}}, &scripted.Options{Repeat: true})
}

// whole returns all events of a turn with the model of script.
func whole(text string) []string {
	return []string{
		fmt.Sprintf("turn_start %q", text), `model_response "Wait."`, "tool_use clock", "tool_use clock",
		"tool_use_result clock", "tool_use_result clock", fmt.Sprintf("model_response %q", "You said "+text+"."), "turn_end end_turn",
	}
}

// follow reads n events of the kinds that shown reports. It returns them and the id of
// the last event.
func follow(t *testing.T, user, url, after string, n int) (events []string, last string) {
	t.Helper()
	for id, event := range watch(t, user, url, after) {
		if text, ok := shown(event); ok {
			events, last = append(events, text), id
		}
		if len(events) == n {
			break
		}
	}
	return events, last
}

// A client whose connection was cut continues with Last-Event-ID and gets each event
// once. The connection may be cut in the middle of a turn or after any event, and the
// service may be restarted.
//
// SPEC L-13
func TestStreamContinues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "http.db")
	cut := make(chan struct{})
	address, stop := start(t, file, script(func(ctx context.Context) {
		select {
		case <-cut:
		case <-ctx.Done():
		}
	}))
	events := address + "/sessions/one/events"
	posted := make(chan string, 1)
	post := func(text string) {
		status, body := ask(t, "ann", http.MethodPost, address+"/sessions/one/messages", fmt.Sprintf(`{"text": %q}`, text))
		posted <- answerOf(status, body)
	}

	go post("first")
	got, last := follow(t, "ann", events, "", 3) // the turn waits for cut, before its last answer
	close(cut)
	rest, last := follow(t, "ann", events, last, len(whole("first"))-3)
	if got = append(got, rest...); !slices.Equal(got, whole("first")) {
		t.Errorf("the events are\n%q\nwant\n%q", got, whole("first"))
	}
	if got, want := <-posted, "200 end_turn You said first."; got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}

	go post("second")
	got, last = follow(t, "ann", events, last, len(whole("second")))
	if !slices.Equal(got, whole("second")) {
		t.Errorf("the events after the first turn are\n%q\nwant\n%q", got, whole("second"))
	}
	<-posted

	// Read one event with each connection. The store keeps only the end of the last turn,
	// so the first turn_end is missing.
	stored := slices.Delete(append(whole("first"), whole("second")...), len(whole("first"))-1, len(whole("first")))
	for i, rule := range []string{"from the beginning", "from a service that was started again"} {
		if i > 0 {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			address, _ = start(t, file, script(nil))
		}
		got, at := []string{}, ""
		for range stored {
			one, id := follow(t, "ann", address+"/sessions/one/events", at, 1)
			got, at = append(got, one...), id
		}
		if !slices.Equal(got, stored) {
			t.Errorf("the events, %s, are\n%q\nwant\n%q", rule, got, stored)
		}
		if at != last {
			t.Errorf("the last id, %s, is %q, want %q as for the client that was there", rule, at, last)
		}
	}
}

// Users do not see each other's sessions, even if the sessions have the same id.
//
// SPEC L-13
func TestUsersAreSeparate(t *testing.T) {
	t.Parallel()
	address, _ := start(t, filepath.Join(t.TempDir(), "http.db"), script(nil))
	for user, text := range map[string]string{"ann": "apples", "bob": "pears"} {
		if status, body := ask(t, user, http.MethodPost, address+"/sessions/one/messages", fmt.Sprintf(`{"text": %q}`, text)); status != http.StatusOK {
			t.Fatalf("%s: %d %s", user, status, body)
		}
	}
	if status, body := ask(t, "ann", http.MethodPost, address+"/sessions/two/messages", `{"text": "more"}`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	for user, want := range map[string]string{"ann": `["two","one"]`, "bob": `["one"]`} {
		if status, body := ask(t, user, http.MethodGet, address+"/sessions", ""); status != http.StatusOK || body != want {
			t.Errorf("the sessions of %s are %d %s, want %s", user, status, body, want)
		}
	}
	got, _ := follow(t, "bob", address+"/sessions/one/events", "", 1)
	if want := []string{`turn_start "pears"`}; !slices.Equal(got, want) {
		t.Errorf("the first event of Bob is %q, want %q", got, want)
	}
	for rule, request := range map[string]struct {
		user, path string
		want       int
	}{
		"a stranger":                  {"eve", "/sessions", http.StatusUnauthorized},
		"the id of another user":      {"bob", "/sessions/ann:one/events", http.StatusBadRequest},
		"the session of a subagent":   {"bob", "/sessions/one%2Fchild/events", http.StatusBadRequest},
		"an id that is not in a path": {"bob", "/sessions/%2E%2E/events", http.StatusBadRequest},
	} {
		if status, _ := ask(t, request.user, http.MethodGet, address+request.path, ""); status != request.want {
			t.Errorf("%s: the status is %d, want %d", rule, status, request.want)
		}
	}
}

// A client that leaves aborts its turn. The service refuses a second message during the
// turn.
func TestLeavingAborts(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	address, _ := start(t, filepath.Join(t.TempDir(), "http.db"), script(func(ctx context.Context) {
		close(running)
		<-ctx.Done() // blocks until the turn is aborted
	}))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		response, err := send(ctx, "ann", http.MethodPost, address+"/sessions/one/messages", `{"text": "go"}`, nil)
		if err == nil {
			err = response.Body.Close()
		}
		left <- err
	}()
	<-running
	if status, _ := ask(t, "ann", http.MethodPost, address+"/sessions/one/messages", `{"text": "and?"}`); status != http.StatusConflict {
		t.Errorf("a second message gets the status %d, want %d", status, http.StatusConflict)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	last := ""
	for _, event := range watch(t, "ann", address+"/sessions/one/events", "") {
		if last, _ = shown(event); event.Kind == belay.EventTurnEnd {
			break
		}
	}
	if last != "turn_end aborted" {
		t.Errorf("the last event is %q", last)
	}
}

// When the service stops, it takes no new turns and waits for running turns. Their
// clients get the answer and all events.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	running, goOn := make(chan struct{}), make(chan struct{})
	address, stop := start(t, filepath.Join(t.TempDir(), "http.db"), script(func(context.Context) {
		close(running)
		<-goOn
	}))
	answer := make(chan string, 1)
	go func() {
		status, body := ask(t, "ann", http.MethodPost, address+"/sessions/one/messages", `{"text": "go"}`)
		answer <- answerOf(status, body)
	}()
	<-running
	watched := make(chan []string, 1)
	events := watch(t, "ann", address+"/sessions/one/events", "")
	go func() {
		var all []string
		for _, event := range events { // until the service ends the stream
			if text, ok := shown(event); ok {
				all = append(all, text)
			}
		}
		watched <- all
	}()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until the service takes no more connections
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			break
		}
		_ = conn.Close()
		runtime.Gosched()
	}
	select {
	case err := <-stopped:
		t.Fatalf("it stopped while a turn ran: %v", err)
	default:
	}
	close(goOn)
	if got, want := <-answer, "200 end_turn You said go."; got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
	if got := <-watched; !slices.Equal(got, whole("go")) {
		t.Errorf("the events are\n%q\nwant\n%q", got, whole("go"))
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// The program with its scripted model exits without an error after SIGTERM during a turn.
func TestProgramStopsOnSIGTERM(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-addr", "127.0.0.1:0", "-db", filepath.Join(t.TempDir(), "http.db"))
	program.Env = append(os.Environ(), serveVariable+"=1", "ANTHROPIC_API_KEY=")
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.Fields(line)[1]
	events := watch(t, "ann", address+"/sessions/one/events", "")
	answer := make(chan string, 1)
	go func() {
		status, body := ask(t, "ann", http.MethodPost, address+"/sessions/one/messages", `{"text": "go"}`)
		answer <- answerOf(status, body)
	}()
	last := ""
	for _, event := range events {
		if event.Kind == belay.EventTextDelta && last == `turn_start "go"` {
			if err := program.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if text, ok := shown(event); ok {
			last = text
		}
	}
	if last != "turn_end end_turn" {
		t.Errorf("the last event is %q", last)
	}
	if got := <-answer; !strings.HasPrefix(got, "200 end_turn In Berlin it is ") {
		t.Errorf("the answer is %s", got)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// The service has few enough lines to be read at once.
func TestServiceIsShort(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, file := range []string{"main.go", "service.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(source), "\n")
	}
	if lines >= 200 {
		t.Errorf("the service has %d lines, want less than 200", lines)
	}
}
