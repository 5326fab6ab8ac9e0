package wire_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/belay-run/belay/provider/internal/wire"
)

// readEvents returns the events of a stream and the error at its end. Each event is a
// string: type|data or !stray.
func readEvents(r io.Reader) (all []string, err error) {
	for events := wire.NewEvents(r); ; {
		e, err := events.Next()
		switch {
		case err != nil:
			return all, err
		case e.Stray != nil:
			all = append(all, "!"+string(e.Stray))
		default:
			all = append(all, e.Type+"|"+string(e.Data))
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, stream string
		want         []string
	}{
		{"the type and the data", "event: a\ndata: 1\n\ndata: 2\n\n", []string{"a|1", "|2"}},
		{"the space is optional", "event:a\ndata:1\n\n", []string{"a|1"}},
		{"lines of Windows", "event: a\r\ndata: 1\r\n\r\n", []string{"a|1"}},
		{"data of several lines", "data: 1\ndata: 2\n\n", []string{"|1\n2"}},
		{"comments, ids and times do not count", ": ping\n\nid: 7\nretry: 9\ndata: 1\n\n", []string{"|1"}},
		{"an event without data does not count", "event: a\n\ndata: 1\n\n", []string{"|1"}},
		{"an event that is cut off does not count", "data: 1\n\ndata: 2\n", []string{"|1"}},
		{"nor one that is cut off in a line", "data: 1\n\ndata: 2", []string{"|1"}},
		{"text that is no event", "oops\n\ndata: 1\n\n", []string{"!oops\n", "|1"}},
		{"an object that is no event, at the end", `{"error":{"code":1}}`, []string{`!{"error":{"code":1}}`}},
		{"unknown fields do not count", "foo: bar\ndata: 1\n\n", []string{"|1"}},
		{"a field may have no colon", "id\nevent\ndata: 1\n\n", []string{"|1"}},
		{"a mark of the byte order does not count", "\uFEFFdata: 1\n\n", []string{"|1"}},
		{"nothing", "", nil},
	} {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			got, err := readEvents(reader(strings.NewReader(test.stream)))
			if !slices.Equal(got, test.want) || !errors.Is(err, io.EOF) {
				t.Errorf("%s: got %q, %v, want %q and the end", test.rule, got, err, test.want)
			}
		}
	}
}

func TestAnEventIsLimited(t *testing.T) {
	t.Parallel()
	for rule, stream := range map[string]io.Reader{
		"one line":   io.MultiReader(strings.NewReader("data: "), zeros{}),
		"many lines": &repeatedLine{line: "data: " + strings.Repeat("x", 1<<20) + "\n"},
	} {
		if got, err := readEvents(stream); len(got) > 0 || !errors.Is(err, wire.ErrEventTooLong) {
			t.Errorf("%s: got %d events and %v, want ErrEventTooLong", rule, len(got), err)
		}
	}
}

// repeatedLine repeats a line without end.
type repeatedLine struct {
	line string
	at   int
}

func (r *repeatedLine) Read(p []byte) (int, error) {
	n := copy(p, r.line[r.at:])
	r.at = (r.at + n) % len(r.line)
	return n, nil
}

// The size of the reads must not change the events, and reading must end.
func FuzzEvents(f *testing.F) {
	f.Add("event: a\ndata: 1\n\n: c\nid:2\n\noops\r\n\r\ndata: 2")
	f.Fuzz(func(t *testing.T, stream string) {
		whole, err := readEvents(strings.NewReader(stream))
		pieces, err2 := readEvents(iotest.OneByteReader(strings.NewReader(stream)))
		if !slices.Equal(whole, pieces) || !errors.Is(err, io.EOF) || !errors.Is(err2, io.EOF) {
			t.Errorf("got %q, %v and, byte by byte, %q, %v", whole, err, pieces, err2)
		}
	})
}
