package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// event is an event of another agent, in Belay's words.
type event struct {
	agent dialect.Vendor
	// name is the vendor's name of the event.
	name string
	// phase is the phase that corresponds to the event, or "" if Belay has nothing to run.
	phase string
	// can says what an answer to the event can express.
	can abilities
	// session and turn are the vendor's ids. Both can be empty.
	session, turn string
	// dir is the directory in which the agent works, or "".
	dir string
	// call is the call of a tool in the vendor's words. calls has the same call in Belay's
	// words: one for each file of a patch, for example.
	call   dialect.Call
	callID string
	calls  []dialect.Call
	// server says which MCP server the call is for. guessed means that calls has several
	// tools that the call may mean, because its name has several meanings.
	server  server
	guessed bool
	// text is the prompt of the user, the last text of the model, or the result of a tool.
	text   string
	failed bool // the tool failed
	// detail is the source of a new session, the reason of its end, the trigger of a
	// compaction, or the name of a subagent.
	detail string
	// continued says that a hook has already made the turn continue.
	continued bool
}

// abilities say what an answer to an event can express.
type abilities struct {
	ask     bool // ask the user about a call
	deny    bool // deny, or make the turn continue
	halt    bool // end the turn
	input   bool // replace the input of a call
	result  bool // replace the result of a call
	context bool // give text to the model
}

// gate reports whether a failure must deny.
func (e *event) gate() bool {
	return e.can.deny && (e.phase == belay.ToolPre.Name() || e.phase == belay.UserPromptSubmit.Name())
}

// fields is a JSON object with exact keys. Package encoding/json ignores the case of keys,
// but the agents do not.
type fields map[string]json.RawMessage

// readFields decodes a JSON object.
func readFields(data []byte) (fields, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("the input is empty: the agent must write its event to standard input")
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("the input is not a JSON object: %w", err)
	}
	if f == nil {
		return nil, errors.New("the input is null: an event is a JSON object")
	}
	return f, nil
}

// text returns the first of these keys that has a string that is not empty, or "".
func (f fields) text(keys ...string) string {
	for _, key := range keys {
		var s string
		if json.Unmarshal(f[key], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// first returns the value of the first of these keys that the object has and that is not
// null.
func (f fields) first(keys ...string) json.RawMessage {
	for _, key := range keys {
		if value := bytes.TrimSpace(f[key]); len(value) > 0 && string(value) != "null" {
			return value
		}
	}
	return nil
}

func (f fields) isTrue(key string) bool {
	var b bool
	return json.Unmarshal(f[key], &b) == nil && b
}

// shown returns a JSON value as text: a string as it is, and everything else as JSON.
func shown(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// setCall sets the call of an event, and translates it. project is the directory whose
// hooks run.
func (e *event) setCall(tool string, input json.RawMessage, id, project string) error {
	if tool == "" {
		return errors.New("the event does not name the tool")
	}
	if input == nil {
		input = json.RawMessage("{}")
	}
	e.call, e.callID = dialect.Call{Tool: tool, Input: input}, id
	calls, err := dialect.Ours(e.call)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return fmt.Errorf("tool %s: cannot determine what the call does", tool)
	}
	for _, call := range calls {
		placed, err := place(call, e.dir, project)
		if err != nil {
			return fmt.Errorf("tool %s: %w", tool, err)
		}
		e.calls = append(e.calls, placed)
	}
	return nil
}

// place says where a call takes place in the way that Belay's own calls do. A path inside
// the project becomes relative to the project, and other paths become absolute. A command
// that runs elsewhere gets a cd in front of it, so that the floor knows where it runs.
func place(call dialect.Call, dir, project string) (dialect.Call, error) {
	if dir == "" {
		dir = project
	}
	in, err := readFields(call.Input)
	if err != nil {
		return call, err
	}
	if call.Tool != "shell" && call.Dir != "" { // a patch of a command is applied where the command runs
		if dir, call.Dir = call.Dir, ""; !filepath.IsAbs(dir) {
			dir = filepath.Join(project, dir)
		}
	}
	switch call.Tool {
	case "shell":
		at := call.Dir
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		call.Dir = ""
		if same(at, project) {
			return call, nil
		}
		call.Dir = at
		in["command"], err = json.Marshal(cdPrefix(at) + in.text("command"))
	case "read", "write", "edit", "list", "glob", "grep":
		path := in.text("path")
		if path == "" {
			if same(dir, project) || call.Tool == "write" || call.Tool == "edit" || call.Tool == "read" {
				return call, nil
			}
			path = dir // the tool looks into the directory in which the agent works
		}
		in["path"], err = json.Marshal(inProject(path, dir, project))
	default:
		return call, nil
	}
	if err != nil {
		return call, err
	}
	call.Input, err = json.Marshal(in)
	return call, err
}

// cdPrefix is the beginning of a command that runs in another directory.
func cdPrefix(dir string) string {
	return "cd -- '" + strings.ReplaceAll(dir, "'", `'\''`) + "' && "
}

// inProject returns a path relative to the project if it is inside, and else the absolute
// path. A path that begins with ~ stays as it is.
func inProject(path, dir, project string) string {
	if strings.HasPrefix(path, "~") {
		return path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if rel, err := filepath.Rel(project, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// same reports whether two paths name the same directory.
func same(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ra, errA := filepath.EvalSymlinks(a)
	rb, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && ra == rb
}

// theirInput returns the input of the vendor's call after hooks have replaced the input of
// Belay's call. An error means that the dialect cannot express the new input.
func (e *event) theirInput(input json.RawMessage, project string) (json.RawMessage, error) {
	if len(e.calls) != 1 {
		return nil, errors.New("the call stands for several calls")
	}
	ours, wanted := e.calls[0], input
	if ours.Dir != "" { // remove the cd that place has added
		in, err := readFields(input)
		if err != nil {
			return nil, err
		}
		command, found := strings.CutPrefix(in.text("command"), cdPrefix(ours.Dir))
		if !found {
			return nil, errors.New("the new command does not run in the directory of the call")
		}
		if in["command"], err = json.Marshal(command); err != nil {
			return nil, err
		}
		if input, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	theirs, err := e.agent.Theirs(dialect.Call{Tool: ours.Tool, Input: input}, project, e.call.Tool)
	if err != nil {
		return nil, err
	}
	was, err := e.agent.Theirs(dialect.Call{Tool: ours.Tool, Input: ours.Input}, project, e.call.Tool)
	if err != nil {
		return nil, err
	}
	made, err := overlay(e.call.Input, was.Input, theirs.Input)
	if err != nil {
		return nil, err
	}
	return made, e.means(made, wanted, project)
}

// means returns an error if the vendor's input does not mean exactly the wanted call.
func (e *event) means(input, wanted json.RawMessage, project string) error {
	again := event{agent: e.agent, dir: e.dir}
	if err := again.setCall(e.call.Tool, input, e.callID, project); err != nil {
		return err
	}
	if len(again.calls) != 1 || canonical(again.calls[0].Input) != canonical(wanted) {
		return errors.New("the new input has no equivalent in the words of the agent")
	}
	return nil
}

// canonical returns JSON with sorted keys and without white space.
func canonical(data json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(data)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(sorted)
}

// overlay applies the difference between two inputs to a third one. So inputs that Belay
// does not know keep their values.
func overlay(original, before, after json.RawMessage) (json.RawMessage, error) {
	out, err := readFields(original)
	if err != nil {
		return nil, err
	}
	was, err := readFields(before)
	if err != nil {
		return nil, err
	}
	now, err := readFields(after)
	if err != nil {
		return nil, err
	}
	for key, value := range now {
		if bytes.Equal(value, was[key]) {
			continue
		}
		if _, known := out[key]; !known {
			return nil, fmt.Errorf("the call has no input %q", key)
		}
		out[key] = value
	}
	for key := range was {
		if _, kept := now[key]; !kept {
			return nil, fmt.Errorf("the input %q cannot be removed", key)
		}
	}
	return json.Marshal(out)
}
