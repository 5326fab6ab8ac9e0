package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// mostPasted limits how many images from the clipboard the chat keeps.
const mostPasted = 8

// pastedImage is an image from the clipboard. The word stands for it in the input.
type pastedImage struct {
	word string
	part belay.Part
}

// pastedMsg has the image of the clipboard, or says why there is none.
type pastedMsg struct {
	part belay.Part
	err  error
}

// pasteImage reads the image in the clipboard.
func (m *model) pasteImage(key string) tea.Cmd {
	if m.controls.Clipboard == nil {
		m.elsewhere(key)
		return nil
	}
	if m.pasting {
		return nil
	}
	m.pasting = true
	read := m.controls.Clipboard
	return func() tea.Msg {
		part, err := read(context.Background())
		return pastedMsg{part, err}
	}
}

// pasted inserts the word for an image at the cursor. The oldest images make room.
func (m *model) pasted(msg pastedMsg) {
	m.pasting = false
	if msg.err != nil {
		m.note(m.look.warn.Render("∙"), msg.err.Error())
		return
	}
	m.pastes++
	media := msg.part.Media
	word := fmt.Sprintf("[image %d: %s, %d KB]", m.pastes, strings.TrimPrefix(media.MIME, "image/"), (len(media.Data)+1023)/1024)
	if len(m.images) == mostPasted {
		m.images = slices.Delete(m.images, 0, 1)
	}
	m.images = append(m.images, pastedImage{word, msg.part})
	m.editor.insert(word + " ")
	m.checkImage(strings.Trim(word, "[]"), media)
}

// checkImage warns about an image that is too large for the current model.
func (m *model) checkImage(name string, media *belay.Media) {
	if m.controls.TooLarge == nil || media == nil {
		return
	}
	if why := m.controls.TooLarge(m.answers, media); why != "" {
		m.note(m.look.warn.Render("∙"), name+" is too large: "+why+". The model gets only a note about it: use a smaller image")
	}
}

// attached returns the images that a message names: by their words, or by their paths.
func (m *model) attached(text string) []belay.Part {
	var parts []belay.Part
	for _, image := range m.images {
		if strings.Contains(text, image.word) {
			parts = append(parts, image.part)
		}
	}
	if m.controls.Attach == nil {
		return parts
	}
	named, said := m.controls.Attach(text)
	for _, line := range said {
		m.note(m.look.dim.Render("∙"), line)
	}
	for i := range named {
		if media := named[i].Media; media != nil {
			m.checkImage(media.Name, media)
		}
	}
	return append(parts, named...)
}
