package proc_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/proc"
)

func TestWindowKeepsBothEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 40).Draw(t, "size")
		window := proc.NewWindow(size)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "writes") {
			if n, err := window.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, p...)
		}
		head, forgotten, tail := window.Ends()
		half := size / 2
		wantHead := all[:min(half, len(all))]
		wantTail := all[max(len(wantHead), len(all)-half):]
		if !bytes.Equal(head, wantHead) || !bytes.Equal(tail, wantTail) {
			t.Fatalf("ends = %v, %v, want %v, %v", head, tail, wantHead, wantTail)
		}
		if want := int64(len(all) - len(wantHead) - len(wantTail)); forgotten != want {
			t.Fatalf("forgotten = %d, want %d", forgotten, want)
		}
	})
}
