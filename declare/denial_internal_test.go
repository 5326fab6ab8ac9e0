package declare

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// spellings are different ways in which hooks may write a denial.
var spellings = []string{
	`{"decision":"deny"}`,
	`{"decision": "deny", "reason": "because"}`,
	"{\n  \"reason\" : \"because\",\r\n\t\"decision\" : \"halt\"\n}",
	`{"continue":false}`,
	`{"blocked" : true,"reason":"because"}`,
	`{"decision":"\u0064eny"}`,
	`{"\u0064ecision":"\u0068\u0061lt"}`,
	`{"bl\u006fcked":true}`,
	`{"decision":"deny","decision":"pass"}`,
	`{"decision":"pass","decision":"deny"}`,
	`{"decision":"deny","unknown":{"decision":"pass","list":[1,{"a":"}"},"{"]}}`,
	`{"reason":"a \"quoted\" {word} \\","decision":"deny"}`,
	`{"decision":"deny","reason":null,"context":[{"text":"\u007b\""}]}`,
	`{"decision":"deny","continue":true,"blocked":false}`,
	`{"output":"checked","decision":"deny"}`,
	`[{"decision":"deny"}]`,
	`{"result":{"decision":"deny"}}`,
	`{"input":{"blocked":true}}`,
	"{\"decision\":\"deny\",\"reason\":\"one\ntwo\xff\"}",
}

// denied fails the test unless the output is a denial.
func denied(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, c *codec, out []byte,
) {
	t.Helper()
	answer, err := c.read(outputOf(out), nil)
	var v struct {
		Decision string `json:"decision"`
	}
	if err != nil || json.Unmarshal(answer, &v) != nil || v.Decision != "deny" && v.Decision != "halt" && (v.Decision != "continue" || !c.isStop()) {
		t.Fatalf("%q became %s, %v, want a denial", out, answer, err)
	}
	if err := c.wire.CheckAnswer(answer); err != nil {
		t.Fatalf("the phase does not take %s: %v", answer, err)
	}
}

// The quick look of denialsIn finds the same denials as the search.
//
// SPEC C-03
func TestDenialsInATextAreFound(t *testing.T) {
	t.Parallel()
	pieces := append(slices.Clone(spellings), `{}`, `{"jsonrpc":"2.0","id":1,"result":`, `}`, `{"context":["a"]}`, `{"decision"`, "\n", "\x1b[0m", `\`, `"`, "é", "deny", "false")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 5).Draw(t, "pieces"), "")
		if got, want := *denialsIn([]byte(text)), *outputOf([]byte(text)).denials(); got != want {
			t.Fatalf("%q has the denials %v, want %v", text, got, want)
		}
	})
}

// A hook that prints a denial denies, whatever bytes come before and after it. This is
// not a failure, so the failure mode does not matter.
//
// SPEC C-03
func FuzzADenialStands(f *testing.F) {
	for i, around := range [][2]string{
		{"", ""},
		{"\x1b]0;checking\n", ""},
		{"\x1b]0;checking", "\a"},
		{"\x1bP", "\x1b\\"},
		{"\x1b", ""},
		{"\x1b[", "\x1b["},
		{"{\"a\":\"", "\"}"},
		{"{\"input\":", "}"},
		{"\"\\", "\""},
		{"'{[(\"", ""},
		{"\\\"", "\\"},
		{"\ufeff", "\r\n\x00"},
		{"\xff\xfe", "\xc2"},
		{strings.Repeat("{", 30), strings.Repeat("}", 3)},
		{strings.Repeat(`{"a":`, 30), ""},
	} {
		f.Add([]byte(around[0]), []byte(around[1]), uint8(i))
	}
	c := codecOf(f, "tool.pre")
	f.Fuzz(func(t *testing.T, before, after []byte, spelling uint8) {
		denied(t, c, slices.Concat(before, []byte(spellings[int(spelling)%len(spellings)]), after))
	})
}

// SPEC C-03
func TestADenialStandsInAnyNoise(t *testing.T) {
	t.Parallel()
	bits := []string{
		"", "\n", "debug", "\x1b[0m", "\x1b]0;title", "\x1b]", "\x1b", "\x1b[", "\x1b[3", "\x1bP", "\x1b_", "\x1b(", "\xc2", "\u009b", "\u009d", "\a", "\x1b\\", "\ufeff",
		"{", "}", "[", "]", `"`, ":", ",", "null", "ok\n", "\u200b", "\r", `\"`, `\`, "\x00", "\xff", `{"a":`, `{"decision":"`, `{"decision":`, `"reason":"`, "'", "<pre>",
	}
	noise := rapid.Custom(func(t *rapid.T) string {
		some := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(bits), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })), 0, 6)
		return strings.Join(some.Draw(t, "bits"), "")
	})
	for _, phase := range []string{"tool.pre", "user.prompt.submit", "subagent.start", "approval.request", "turn.stop"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			c := codecOf(t, phase)
			rapid.Check(t, func(t *rapid.T) {
				spelling := rapid.SampledFrom(spellings).Draw(t, "spelling")
				if c.isStop() {
					spelling = rapid.SampledFrom([]string{`{"decision":"deny"}`, `{"reason":"\n","decision":"continue"}`}).Draw(t, "stop")
				}
				denied(t, c, []byte(noise.Draw(t, "before")+spelling+noise.Draw(t, "after")))
			})
		})
	}
}

// Terminal escape sequences can be anywhere in a denial, even inside a word.
//
// SPEC C-03
func TestADenialStandsInColour(t *testing.T) {
	t.Parallel()
	sequences := []string{
		"\x1b[0m", "\x1b[1;38;5;208m", "\x1b[2K", "\x1b[?25l", "\x1b]0;title\a", "\x1b]8;;https://example.com/\"a\"\x1b\\", "\x1bPq\"1;1\x1b\\", "\x1b(B", "\x1b7", "\x1bM",
		"\u009b31m", "\u009d0;\"title\"\u009c",
	}
	before := rapid.SampledFrom([]string{"", "\x1b", "\x1b]0;title", "\x1b[", "\x1b[3", "\x1b(", "\xc2", "\u009d", "\x1bPq", "debug: ", "{", `"`, `\`, "\x1b]0;title\n"})
	c := codecOf(t, "tool.pre")
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SampledFrom([]string{`{"decision":"deny"}`, `{"continue": false}`, `{"reason":"a","blocked":true}`, `{"decision":"h\u0061lt"}`}).Draw(t, "spelling")
		var b strings.Builder
		b.WriteString(before.Draw(t, "before"))
		for i := range len(plain) {
			b.WriteByte(plain[i])
			if i < len(plain)-1 && rapid.IntRange(0, 3).Draw(t, "coloured") == 0 {
				b.WriteString(rapid.SampledFrom(sequences).Draw(t, "sequence"))
			}
		}
		denied(t, c, []byte(b.String()))
	})
}

// SPEC C-03
func TestADenialStandsInOtherEncodings(t *testing.T) {
	t.Parallel()
	c := codecOf(t, "tool.pre")
	wide := utf16.Encode([]rune("\ufeff" + `{"decision": "deny", "reason": "no"}` + "\r\n"))
	var little, big []byte
	for _, u := range wide {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for rule, out := range map[string][]byte{
		"UTF-16, little end first": little, "UTF-16, big end first": big,
		"zero bytes in a word":     []byte("{\"deci\x00sion\":\"de\x00ny\"}"),
		"an escape character":      []byte("{\x1b\"decision\":\"deny\"}"),
		"half a control sequence":  []byte("{\x1b[\"decision\":\x1b[\"deny\"}"),
		"half a control string":    []byte("{\x1b]R\"decision\":\"deny\"}"),
		"in front of a truth":      []byte("{\"blocked\":\x1b[true}"),
		"a mark in front of a key": []byte("{\"\ufeffdecision\":\"deny\"}"),
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			denied(t, c, out)
		})
	}
}

// The most severe denial wins, with its reason. If the parsed answer is the same denial,
// its other content is kept.
//
// SPEC C-03
func TestWhichDenialStands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, phase, out, want string }{
		{"a halt behind a denial", "tool.pre", `{"decision":"deny","reason":"a"} {"decision":"halt","reason":"b"}`, `{"decision":"halt","reason":"b"}`},
		{"a denial behind a halt", "tool.pre", `{"decision":"halt","reason":"a"} {"decision":"deny","reason":"b"}`, `{"decision":"halt","reason":"a"}`},
		{"the first reason", "tool.pre", `{"decision":"deny"} {"decision":"deny","reason":"b"} {"decision":"deny","reason":"c"}`, `{"decision":"deny","reason":"b"}`},
		{"a denial before a synonym", "tool.pre", `x {"blocked":true,"reason":"a"} {"decision":"deny","reason":"b"}`, `{"decision":"deny","reason":"b"}`},
		{"a halt inside of a denial", "tool.pre", `{"decision":"deny","context":[{"text":"t","decision":"halt"}]}`, `{"decision":"halt","reason":""}`},
		{"the reason of its own object", "tool.pre", `{"reason":"outer","x":{"reason":"inner","decision":"deny"}}`, `{"decision":"deny","reason":"inner"}`},
		{"a reason that is escaped", "tool.pre", `!{"decision":"deny","reason":"a\n\"b\" \u00e9 \ud83d\ude00 \ud83d C:\dir"}`, `{"decision":"deny","reason":"a\n\"b\" é 😀 � C:\\dir"}`},
		{"an answer that denies keeps its context", "tool.pre", `{"decision":"deny","context":"t"}`, `{"context":[{"text":"t"}],"decision":"deny"}`},
		{"an answer that halts keeps its context", "tool.pre", `{"decision":"halt","context":["t"],"audit":[]}`, `{"audit":[],"context":[{"text":"t"}],"decision":"halt"}`},
		{"a halt where there is none", "user.prompt.submit", `x {"decision":"halt","reason":"r"}`, `{"decision":"deny","reason":"r"}`},
		{"a denial of the stop", "turn.stop", `x {"decision":"deny","reason":"r"}`, `{"decision":"continue","reason":"r"}`},
		{"going on", "turn.stop", `{"decision":"continue","reason":"r","x":1}`, `{"decision":"continue","reason":"r"}`},
		{"a tool's input that says so too", "tool.pre", `{"input":{"decision":"deny"}}`, `{"decision":"deny","reason":""}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, err := codecOf(t, test.phase).read(outputOf([]byte(test.out)), nil)
			if err != nil || string(got) != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// Text that only looks similar to a denial is not one.
//
// SPEC C-03
func TestWhatIsNoDenial(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, phase, out string }{
		{"a word that is not the decision", "tool.pre", `x {"decision":"denied"}`},
		{"another key", "tool.pre", `x {"my decision":"deny"}`},
		{"a key in capitals", "tool.pre", `x {"Decision":"deny"}`},
		{"a truth value in quotes", "tool.pre", `x {"blocked":"true"}`},
		{"a synonym that permits", "tool.pre", `x {"continue":true,"blocked":false}`},
		{"a value that is a key", "tool.pre", `x {"a":"decision"} "deny"`},
		{"two objects", "tool.pre", `x {"decision":1} {"a":"deny"}`},
		{"an object that does not end", "tool.pre", `x {"decision":"deny"`},
		{"no object", "tool.pre", `x "decision":"deny"`},
		{"quoted once more", "tool.pre", `x "{\"decision\":\"deny\"}"`},
		{"a synonym at turn.stop", "turn.stop", `x {"continue":false}`},
		{"a halt at turn.stop", "turn.stop", `x {"decision":"halt"}`},
		{"going on, elsewhere", "tool.pre", `x {"decision":"continue"}`},
		{"a phase that cannot block", "tool.post", `x {"decision":"deny"}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got, _ := codecOf(t, test.phase).read(outputOf([]byte(test.out)), nil); strings.Contains(string(got), "decision\":\"") {
				t.Errorf("it is %s, want no denial", got)
			}
		})
	}
}

// The search reads each byte only once, and its memory is limited.
//
// SPEC C-03, C-07
func TestSearchingTakesNoLongerThanReading(t *testing.T) {
	t.Parallel()
	c := codecOf(t, "tool.pre")
	for _, piece := range []string{
		"{", "}", `{"`, `"{`, `{"a":`, `{"a":{"b":[`, `{"decision":"deny",`, `"`, `\"`, `{\`, "\x1b", "\x1b]", "\x1b[", "\x1b]{", "\u009b", "\xc2", `{"reason":"a`, `{"reason":"a","b":`,
		`{"reason":"` + strings.Repeat("r", longestText) + `","a":`, "\x1b]" + strings.Repeat("x", longestString),
	} {
		out := bytes.Repeat([]byte(piece), 1<<20/len(piece))
		begun := time.Now()
		o := newOutput()
		if _, err := o.Write(out); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 30*time.Second { // reading the rest again for each byte would take many minutes
			t.Errorf("%q: 1 MiB took %s", piece[:min(20, len(piece))], took)
		}
		held := len(o.clean.held)
		for _, s := range []*search{&o.raw, &o.plain} {
			for _, r := range []*reader{s.between, s.inside} {
				if r == nil {
					continue
				}
				held += cap(r.text) + 32*cap(r.open)
				for _, object := range r.open {
					held += len(object.reason)
				}
			}
		}
		if held > 8<<20 {
			t.Errorf("%q: it remembers %d bytes", piece[:min(20, len(piece))], held)
		}
		if _, err := o.Write([]byte("\n" + `{"decision":"deny"}`)); err != nil {
			t.Fatal(err)
		}
		if c.denial(o.denials(), "") == nil {
			t.Errorf("%q: the denial behind it is lost", piece[:min(20, len(piece))])
		}
	}
}

// A denial is found even if the output arrives in pieces, and at any depth that
// encoding/json accepts.
//
// SPEC C-03
func TestADenialStandsInPieces(t *testing.T) {
	t.Parallel()
	c := codecOf(t, "tool.pre")
	for _, spelling := range append(spellings, "\x1b]0;a\n\x1b[1m{\"deci\x1b]0;b\asion\":\"de\u009b0mny\"}") {
		o := newOutput()
		for i := range len(spelling) {
			if _, err := o.Write([]byte{spelling[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if c.denial(o.denials(), "") == nil {
			t.Errorf("%q: the denial is lost", spelling)
		}
	}
	deep := strings.Repeat(`{"a":`, deepest)
	denied(t, c, []byte(`{"a":1`+strings.Repeat(`{"b":`, 3*deepest)+deep+`{"decision":"deny"}`))
	denied(t, c, []byte(`{"decision":"deny","b":`+deep+"1"+strings.Repeat("}", deepest)+"}"))
}

func TestWithoutEscapes(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"plain\n":                   "plain\n",
		"\x1b[1;32mok\x1b[0m":       "ok",
		"\x1b]0;title\aok":          "ok",
		"\x1b]0;title\x1b\\ok":      "ok",
		"\x1b]0;title\nok":          "]0;title\nok",
		"\x1b]0;title":              "]0;title",
		"\x1b]0;a\x1b[1mb\x1b[0m\a": "]0;ab\a",
		"\x1bP1$r0m\x1b\\ok":        "ok",
		"\x1b(Bok\x1b)0":            "ok",
		"a\x1b":                     "a",
		"\x1b\x1b[1mok":             "ok",
		"\x1b{ok":                   "{ok",
		"\x1b[{ok":                  "[{ok",
		"\x1b[3;":                   "[3;",
		"\u009b1mok":                "ok",
		"\u009d0;t\u009cok":         "ok",
		"\u009d0;t\u009b1mok":       "0;tok",
		"é\u00a0\xc2":               "é\u00a0\xc2",
		"\x1b]0;é\u00a0\a\u00a0ok":  "\u00a0ok",
		"\x1b]0;\xc2":               "]0;\xc2",
		"\x1b[" + strings.Repeat("1", 100) + "mok": "[" + strings.Repeat("1", 100) + "mok",
	} {
		if got := string(withoutEscapes([]byte(out))); got != want {
			t.Errorf("%q became %q, want %q", out, got, want)
		}
	}
}

// noises generates bytes that may come before or after a denial.
func noises() *rapid.Generator[[]byte] {
	bits := rapid.SampledFrom([]string{"\n", "debug\n", "{", "}", `"`, `\`, "[", "\x1b]0;", "\x1b[", "\x00", "\xff", "null\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", `{"decision":"`})
	return rapid.Custom(func(t *rapid.T) []byte {
		if rapid.Bool().Draw(t, "any") {
			return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		return []byte(strings.Join(rapid.SliceOfN(bits, 0, 5).Draw(t, "bits"), ""))
	})
}

// SPEC C-03, C-09
func TestADenialOfAWebhookStandsInAnyNoise(t *testing.T) {
	t.Parallel()
	c := codecOf(t, "tool.pre")
	rapid.Check(t, func(t *rapid.T) {
		body := slices.Concat(noises().Draw(t, "before"), []byte(rapid.SampledFrom(spellings).Draw(t, "spelling")), noises().Draw(t, "after"))
		status := rapid.SampledFrom([]int{200, 204, 302, 403, 500}).Draw(t, "status")
		h := &handler{codec: c, set: &Set{client: newClient(answers(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(iotest.OneByteReader(bytes.NewReader(body))), Request: r}, nil
		}))}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.exchange(t.Context(), request)
		if err != nil || !strings.Contains(string(answer), `"decision":"deny"`) && !strings.Contains(string(answer), `"decision":"halt"`) {
			t.Fatalf("%q with status %d became %s, %v, want a denial", body, status, answer, err)
		}
	})
}

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// SPEC C-03, C-08
func TestADenialOfAWorkerStandsInAnyNoise(t *testing.T) {
	t.Parallel()
	c := codecOf(t, "tool.pre")
	rapid.Check(t, func(t *rapid.T) {
		denial := rapid.SampledFrom(spellings).Draw(t, "spelling")
		if rapid.Bool().Draw(t, "as an answer") {
			denial = `{"jsonrpc":"2.0","id":2,"result":` + denial + "}"
		}
		printed := slices.Concat(noises().Draw(t, "before"), []byte(denial), noises().Draw(t, "after"))
		call := make(chan response, 1)
		p := &process{
			k: &keeper{set: &Set{opts: Options{Grace: time.Hour}}}, last: 2, calls: map[uint64]chan response{2: call}, stop: func(error) {},
		}
		for piece := range slices.Chunk(printed, rapid.IntRange(1, 50).Draw(t, "pieces")) {
			if _, err := p.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		p.lastLine()
		said := response{err: errEnded}
		if p.garbage != nil {
			said.found = p.garbage.denials()
		}
		select {
		case said = <-call:
		default:
		}
		answer, err := c.answered(&said)
		if err != nil || !strings.Contains(string(answer), `"decision":"deny"`) && !strings.Contains(string(answer), `"decision":"halt"`) {
			t.Fatalf("%q became %s, %v, want a denial", printed, answer, err)
		}
	})
}
