package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
)

const envelope = `{"v":1,"phase":"tool.pre","session":"s","turn":"t","step":2,"agent":"main","cwd":"/srv","origin":{"kind":"project"},"input":{"id":"1","tool":"write","input":{"do":"DO"}}}`

func run(do string) string { return strings.Replace(envelope, "DO", do, 1) }

// handler denies, waits for the end of its context, fails or panics, as the call's input
// says.
func handler(cancelled chan<- struct{}) worker.Handler {
	return worker.On(belay.ToolPre, func(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		var in struct{ Do string }
		if err := call.Decode(&in); err != nil {
			return belay.Pass, err
		}
		switch in.Do {
		case "deny":
			return belay.Deny(call.Session() + "/" + call.Turn() + "/" + call.Agent() + " " + call.Tool()), nil
		case "wait":
			<-ctx.Done()
			cancelled <- struct{}{}
		case "fail":
			return belay.Pass, errors.New("broken")
		case "panic":
			panic("oops")
		}
		return belay.Pass, nil
	})
}

// SPEC C-08
func TestServeSpeaksTheProtocol(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	read, out := io.Pipe()
	cancelled, served := make(chan struct{}, 2), make(chan error, 1)
	go func() {
		served <- worker.Serve(t.Context(), in, out, handler(cancelled))
		_ = out.Close()
	}()
	answers := bufio.NewScanner(read)
	ask := func(line, want string) {
		t.Helper()
		if _, err := io.WriteString(feed, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			return
		}
		if !answers.Scan() || answers.Text() != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, answers.Text(), want)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"hello","params":{"v":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"v":1}}`)
	ask(`{"jsonrpc":"2.0","id":2,"method":"run","params":`+run("wait")+`}`, "") // runs while the next calls are answered
	ask(`{"jsonrpc":"2.0","id":3,"method":"run","params":`+run("deny")+`}`, `{"jsonrpc":"2.0","id":3,"result":{"decision":"deny","reason":"s/t/main write"}}`)
	ask(`{"jsonrpc":"2.0","id":4,"method":"run","params":`+run("pass")+`}`, `{"jsonrpc":"2.0","id":4,"result":{}}`)
	ask(`{"jsonrpc":"2.0","id":5,"method":"run","params":`+run("fail")+`}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"broken"}}`)
	ask(`{"jsonrpc":"2.0","id":6,"method":"run","params":`+run("panic")+`}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"the handler panicked: oops"}}`)
	ask(`{"jsonrpc":"2.0","id":7,"method":"run","params":`+strings.Replace(run("deny"), "tool.pre", "turn.stop", 1)+`}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"this worker has no handler for turn.stop"}}`)
	ask(`{"jsonrpc":"2.0","id":8,"method":"run","params":`+strings.Replace(run("deny"), `"v":1`, `"v":2`, 1)+`}`,
		`{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"the envelope has version 2, but this worker supports only 1"}}`)
	ask(`{"jsonrpc":"2.0","id":9,"method":"run","params":[]}`, `{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"the envelope: json: cannot unmarshal array into Go value of type worker.Envelope"}}`)
	ask(`{"jsonrpc":"2.0","id":10,"method":"nod"}`, `{"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"there is no method \"nod\""}}`)
	ask(`{"jsonrpc":"2.0","method":"nod"}`, "") // a notification has no answer
	ask(`{"jsonrpc":"2.0","method":"cancel","params":{"id":2}}`, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	<-cancelled
	ask(`{"jsonrpc":"2.0","id":11,"method":"run","params":`+run("wait")+`}`, "")
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if !answers.Scan() { // the end of the input cancels the call
		t.Error("the call under way was not answered")
	}
	<-cancelled
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// SPEC C-02
func TestServeAnswersAnEnvelope(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := worker.Serve(t.Context(), strings.NewReader(run("deny")), &out, handler(nil)); err != nil || out.String() != `{"decision":"deny","reason":"s/t/main write"}`+"\n" {
		t.Errorf("answer %s, %v", out.String(), err)
	}
	out.Reset()
	if err := worker.Serve(t.Context(), strings.NewReader(run("fail")), &out, handler(nil)); err == nil || out.Len() > 0 {
		t.Errorf("answer %s, %v: want an error and no answer", out.String(), err)
	}
}

func TestServeRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"garbage\n", `{"jsonrpc":"1.0"}` + "\n", `{"jsonrpc":"2.0",` + "\n", "[]\n"} {
		if err := worker.Serve(t.Context(), strings.NewReader(text), io.Discard, handler(nil)); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
	if err := worker.Serve(t.Context(), strings.NewReader(""), io.Discard); err != nil {
		t.Errorf("nothing: %v", err)
	}
	broken, w := io.Pipe()
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	if err := worker.Serve(t.Context(), strings.NewReader(run("deny")), w, handler(nil)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("err = %v, want that it cannot write", err)
	}
}

func TestEnvelopeHasAForm(t *testing.T) {
	t.Parallel()
	var e worker.Envelope
	if err := json.Unmarshal([]byte(run("deny")), &e); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err != nil || string(data) != run("deny") || e.Origin.Kind != hook.OriginProject {
		t.Errorf("%s, %v: want the same", data, err)
	}
}
