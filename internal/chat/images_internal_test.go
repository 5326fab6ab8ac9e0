package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// ctrl+v pastes the image in the clipboard as a word. The message sends the images whose words it
// has, also if it steers a running turn.
//
// SPEC U-02
func TestPasteImage(t *testing.T) {
	t.Parallel()
	n := 0
	var wrong error
	b := openBench(t, &Options{Controls: Controls{Clipboard: func(context.Context) (belay.Part, error) {
		n++
		return belay.Image("image/png", fmt.Appendf(nil, "%d%s", n, strings.Repeat("x", 2000))), wrong
	}}}, &opening{session: "main", steers: true})
	sent := func() string {
		var all []string
		for _, part := range b.parts {
			all = append(all, string(part.Media.Data[:1]))
		}
		return strings.Join(all, " ")
	}
	b.keys("what is", " ", "ctrl+v")
	shows(t, "the view", b.view(), "› what is [image 1: png, 2 KB]")
	b.keys("and ", "alt+v", "enter")
	if b.last() != "run what is [image 1: png, 2 KB] and [image 2: png, 2 KB]" || sent() != "1 2" {
		t.Errorf("the host was asked to %q with the images %q", b.last(), sent())
	}
	b.keys("look at ", "ctrl+v", "enter")
	if b.last() != "steer 1 look at [image 3: png, 2 KB]" || sent() != "3" {
		t.Errorf("the host was asked to %q with the images %q", b.last(), sent())
	}
	b.send(steeredMsg{id: 1}, overMsg{})
	b.keys("ctrl+v", "ctrl+u", "no image", "enter")
	if b.last() != "run no image" || sent() != "" {
		t.Errorf("the host was asked to %q with the images %q", b.last(), sent())
	}
	b.send(overMsg{})
	b.keys("up", "up", "up", "enter") // a message of the history has its images
	if sent() != "1 2" {
		t.Errorf("a message of the history (%q) has the images %q", b.last(), sent())
	}
	b.send(overMsg{})
	for range mostPasted + 1 {
		b.keys("ctrl+v", "ctrl+u")
	}
	if len(b.m.images) != mostPasted {
		t.Errorf("the chat keeps %d images", len(b.m.images))
	}
	wrong = errors.New("there is no image in the clipboard")
	b.keys("ctrl+v")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "∙ there is no image in the clipboard")
}

// While the clipboard is read, the chat says so, and reads it only once.
func TestPasteImageTakesTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, &Options{Controls: Controls{Clipboard: func(context.Context) (belay.Part, error) {
		return belay.Image("image/png", []byte("x")), nil
	}}})
	cmd := b.m.pasteImage("ctrl+v")
	if again := b.m.pasteImage("ctrl+v"); cmd == nil || again != nil {
		t.Error("a second ctrl+v reads the clipboard again")
	}
	b.keys("text")
	shows(t, "the view", b.view(), "› text", "reading the clipboard")
	b.send(cmd())
	hides(t, "the view", b.view(), "reading the clipboard")
	none := newBench(t, nil)
	none.keys("ctrl+v")
	shows(t, "the scrollback", strings.Join(none.printed, "\n"), "ctrl+v does not work here")
}

// An image that the model would not get is named at once, with its size. It is sent nevertheless,
// because another model may get it.
//
// SPEC U-02
func TestLargeImages(t *testing.T) {
	t.Parallel()
	large := belay.Image("image/png", []byte(strings.Repeat("x", 4000)))
	large.Media.Name = "large.png"
	b := newBench(t, &Options{Model: "small/one", Controls: Controls{
		Clipboard: func(context.Context) (belay.Part, error) { return large, nil },
		Attach:    func(string) ([]belay.Part, []string) { return []belay.Part{large}, []string{"attached large.png"} },
		TooLarge: func(model string, image *belay.Media) string {
			if model != "small/one" || len(image.Data) != 4000 {
				return ""
			}
			return "it has 4 KB, and small accepts 3 KB"
		},
	}})
	b.keys("ctrl+v")
	said := strings.Join(b.printed, " ")
	shows(t, "the scrollback", said, "∙ image 1: png, 4 KB is too large: it has 4 KB, and small", "accepts 3 KB")
	shows(t, "the view", b.view(), "› [image 1: png, 4 KB]")
	b.keys("ctrl+u", "see large.png", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, " "), "› see large.png", "∙ attached large.png", "∙ large.png is too large")
	b.send(overMsg{})
	b.m.answers = "large/one"
	before := len(b.printed)
	b.keys("ctrl+v")
	hides(t, "the scrollback", strings.Join(b.printed[before:], " "), "too large")
}
