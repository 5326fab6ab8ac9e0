package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/sqlite"
)

// serveVariable is an environment variable. If it is set, the test binary runs the
// program itself instead of the tests.
const serveVariable = "EXAMPLE_SUPPORT_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the program in a process of its own. kill ends it with SIGKILL.
func start(t *testing.T, dir string) (address string, kill func()) {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0], "-addr", "127.0.0.1:0", "-dir", dir)
	program.Env = append(os.Environ(), serveVariable+"=1", "ANTHROPIC_API_KEY=")
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		if err := program.Process.Kill(); err != nil {
			t.Errorf("kill the program: %v", err)
		}
		_ = program.Wait() // ignore the error: the process was killed
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program said %q: %v", line, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "Listening on ")), kill
}

// ask makes a request and decodes the response. For addresses of approvals, it logs in as
// the approver.
func ask(t *testing.T, method, url string, body, into any) (status int, text string) {
	t.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(string(sent)))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("boss", "plum")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%s %s: %s %s: %v", method, url, response.Status, data, err)
		}
	}
	return response.StatusCode, string(data)
}

// paid returns the lines of the ledger.
func paid(t *testing.T, dir string) []payment {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "refunds.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []payment
	for line := range strings.Lines(string(data)) {
		var one payment
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("a line of the ledger is %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// waiting runs a turn until it waits for an approval, kills the program, and starts it
// again. It returns the question that the new process lists.
func waiting(t *testing.T, dir string) (address string, kill func(), question belay.Question) {
	t.Helper()
	address, kill = start(t, dir)
	status, text := ask(t, http.MethodPost, address+"/tickets/7", map[string]string{"text": "My kettle is broken, I want my money back."}, nil)
	if status != http.StatusAccepted {
		t.Fatalf("the ticket gets %d %s, want %d", status, text, http.StatusAccepted)
	}
	kill()
	address, kill = start(t, dir)
	var questions []belay.Question
	ask(t, http.MethodGet, address+"/approvals", nil, &questions)
	if len(questions) != 1 || questions[0].Reason != "Refund 49.90 EUR, because it is broken?" {
		t.Fatalf("the questions are %+v", questions)
	}
	var in Refund
	if err := json.Unmarshal(questions[0].Input, &in); err != nil || in.Order != demoOrder || in.Amount != (Amount{4990, "EUR"}) {
		t.Fatalf("the question is about %s, %v", questions[0].Input, err)
	}
	if got := paid(t, dir); len(got) != 0 {
		t.Fatalf("paid without approval: %+v", got)
	}
	return address, kill, questions[0]
}

// The program is killed while a refund waits for approval. A decision in the next process
// resumes the turn, and the refund is paid once.
//
// SPEC L-01
func TestRefundAcrossAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address, kill, question := waiting(t, dir)
	if status, text := ask(t, http.MethodPost, address+"/tickets/7", map[string]string{"text": "Well?"}, nil); status != http.StatusConflict {
		t.Errorf("another message to the parked ticket gets %d %s, want %d", status, text, http.StatusConflict)
	}
	wrong := belay.Decision{Approval: question.ID, Hash: "of another input", Allow: true}
	if status, text := ask(t, http.MethodPost, address+"/approvals", wrong, nil); status != http.StatusConflict {
		t.Errorf("a decision about another input gets %d %s, want %d", status, text, http.StatusConflict)
	}

	decision := belay.Decision{Approval: question.ID, Hash: question.Hash, Allow: true, By: "mallory"}
	var outcome Outcome
	status, text := ask(t, http.MethodPost, address+"/approvals", decision, &outcome)
	if want := (Outcome{"You get 49.90 EUR back, and we call you.", "solved", 4990}); status != http.StatusOK || outcome != want {
		t.Errorf("the outcome is %d %s, want %+v", status, text, want)
	}
	if status, text := ask(t, http.MethodPost, address+"/approvals", decision, nil); status != http.StatusConflict {
		t.Errorf("a second decision gets %d %s, want %d", status, text, http.StatusConflict)
	}
	kill()
	start(t, dir)
	if got := paid(t, dir); len(got) != 1 || got[0].Order != demoOrder || got[0].Amount.Cents != 4990 || got[0].Note != nil {
		t.Errorf("the ledger has %+v, want one payment", got)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "support.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for approval, err := range store.Approvals(t.Context(), belay.ApprovalFilter{}) {
		if err != nil || approval.Decided == nil || approval.Decided.By != "boss" {
			t.Errorf("the approval is %+v, %v, want it decided by the approver who has logged in", approval, err)
		}
	}
	for m, err := range store.Read(t.Context(), "ticket:7", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == belay.KindAssistant && m.Model != "scripted/second" {
			t.Errorf("the model %q has answered, want the fallback", m.Model)
		}
	}
}

// If somebody decides while the program is down, the program resumes the turn when it
// starts.
func TestDecidedWhileDown(t *testing.T) {
	t.Parallel()
	for name, allow := range map[string]bool{"approved": true, "denied": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, kill, question := waiting(t, dir)
			kill()
			store, err := sqlite.Open(t.Context(), filepath.Join(dir, "support.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Decide(t.Context(), belay.Decision{Approval: question.ID, Hash: question.Hash, Allow: allow, By: "boss"}); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			address, _ := start(t, dir)
			var questions []belay.Question
			ask(t, http.MethodGet, address+"/approvals", nil, &questions) // the service answers only after it has resumed the open turns
			want := 0
			if allow {
				want = 1
			}
			if got := paid(t, dir); len(questions) != 0 || len(got) != want {
				t.Errorf("the questions are %+v and the payments %+v, want none and %d", questions, got, want)
			}
		})
	}
}
