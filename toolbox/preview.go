package toolbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Preview returns what a call of write or edit would change, for a person who must approve
// the call. It compares with the file as it is now, and it changes nothing. Of the options
// it uses Extra. The bool is false for other tools. An error says why the call would fail.
func Preview(root *os.Root, opts *Options, tool string, input json.RawMessage) (ChangeView, bool, error) {
	if tool != "write" && tool != "edit" {
		return ChangeView{}, false, nil
	}
	f := &files{project: newPlace(root)}
	if opts != nil {
		for _, extra := range opts.Extra {
			f.extra.add(newPlace(extra))
		}
	}
	view, err := f.preview(tool, input)
	return view, true, err
}

func (f *files) preview(tool string, input json.RawMessage) (ChangeView, error) {
	var in struct {
		editInput

		Content string `json:"content"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return ChangeView{}, fmt.Errorf("preview: the input is not valid: %w", err)
	}
	at, err := f.locate(in.Path)
	if err != nil {
		return ChangeView{}, err
	}
	old, err := at.load()
	switch {
	case tool == "write" && errors.Is(err, fs.ErrNotExist):
		return changeView(at.shown, "created", "", in.Content), nil
	case err != nil:
		return ChangeView{}, f.explain(at, err)
	case tool == "edit":
		after, _, err := replaceIn(at.shown, string(old.data), &in.editInput)
		if err != nil {
			return ChangeView{}, err
		}
		return previewed("edited", at, old, after), nil
	case string(old.data) == in.Content:
		return ChangeView{Kind: "change", Path: at.shown, Action: "unchanged"}, nil
	default:
		return previewed("overwritten", at, old, in.Content), nil
	}
}

// previewed returns the view of a change of a file that exists.
func previewed(action string, at spot, old *current, after string) ChangeView {
	view := changeView(at.shown, action, string(old.data), after)
	view.Seen = old.sum().text()
	return view
}
