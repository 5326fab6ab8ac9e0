package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// fetchCalls returns a call for each address that a tool reads.
func fetchCalls(name string, in fields) ([]Call, error) {
	urls, err := addresses(name, in)
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, errors.New("its input has no address")
	}
	var calls []Call
	for _, url := range urls {
		out := fields{}
		out.put("url", &url)
		one, err := one(toolFetch, out)
		if err != nil {
			return nil, err
		}
		calls = append(calls, one...)
	}
	return calls, nil
}

// inText matches addresses in a text.
var inText = lazyregexp.New(`(?i)\bhttps?://[^\s<>"'` + "`" + `]+`)

// addresses returns the addresses of an input: in url, in the list urls, and in the prompt of
// Gemini CLI's web_fetch. An agent may use any of them.
func addresses(name string, in fields) ([]string, error) {
	var all []string
	url, err := in.only("url", "uri")
	if err != nil {
		return nil, err
	}
	if url != nil && *url != "" {
		all = append(all, *url)
	}
	if in["urls"] != nil {
		var list []string
		if json.Unmarshal(in["urls"], &list) != nil {
			return nil, fmt.Errorf("its input %s is not a list of texts", "urls")
		}
		all = append(all, list...)
	}
	if prompt := in.text("prompt"); prompt != nil && name == toolFetch {
		for _, address := range inText.FindAllString(*prompt, -1) {
			if address = strings.TrimRight(address, ".,;:!?)]}"); !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	return all, nil
}

// todoCall translates a to-do list. Agents name the items and their states differently.
func todoCall(in fields) ([]Call, error) {
	type item struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	items := []item{}
	for _, f := range in.list("todos", "plan", "todoList") {
		var one item
		if text := f.text("content", "step", "description", "title"); text != nil {
			one.Content = *text
		}
		if status := f.text("status"); status != nil {
			one.Status = *status
		}
		switch one.Status {
		case "in-progress":
			one.Status = "in_progress"
		case "", "not-started":
			one.Status = "pending"
		}
		items = append(items, one)
	}
	data, err := json.Marshal(map[string]any{"todos": items})
	return []Call{{Tool: toolTodo, Input: data}}, err
}

// theirTodos returns the items of a to-do list as a vendor's hooks read them.
func theirTodos(v Vendor, todos json.RawMessage) json.RawMessage {
	var items []map[string]string
	if json.Unmarshal(todos, &items) != nil {
		return todos
	}
	for _, one := range items {
		switch v {
		case ClaudeCode:
			one["activeForm"] = one["content"]
		case GeminiCLI:
			one["description"] = one["content"]
			delete(one, "content")
		default:
		}
	}
	data, err := json.Marshal(items)
	if err != nil {
		return todos
	}
	return data
}
