package belay

import "strconv"

// ModelRequest is the input of model.pre: a request that will be sent.
type ModelRequest struct{ input[modelRequest] }

type modelRequest struct {
	Model    string `json:"model" jsonschema:"the model's name"`
	Attempt  int    `json:"attempt" jsonschema:"counted from 1; retries count up"`
	Messages int    `json:"messages" jsonschema:"how many messages the request has, without its reminders"`
	Tools    int    `json:"tools" jsonschema:"how many tools the request declares"`
	soFar
}

func (r *modelRequest) part() string { return strconv.Itoa(r.Attempt) }

// Model is the model's name.
func (r ModelRequest) Model() string { return r.data().Model }

// Attempt is the number of the attempt, counted from 1.
func (r ModelRequest) Attempt() int { return r.data().Attempt }

// Messages is how many messages the request has, without the reminders that are sent with
// it.
func (r ModelRequest) Messages() int { return r.data().Messages }

// Tools is how many tools the request declares.
func (r ModelRequest) Tools() int { return r.data().Tools }

// Usage counts tokens and money.
type Usage struct {
	In         int     `json:"in" jsonschema:"tokens in"`
	Out        int     `json:"out" jsonschema:"tokens out"`
	CacheRead  int     `json:"cache_read,omitempty" jsonschema:"tokens read from the provider's cache"`
	CacheWrite int     `json:"cache_write,omitempty" jsonschema:"tokens written to the provider's cache"`
	Cost       float64 `json:"cost,omitempty" jsonschema:"in US dollars"`
}

// ModelResponse is the input of model.post: a stored response.
type ModelResponse struct{ input[modelResponse] }

type modelResponse struct {
	Model      string `json:"model" jsonschema:"the model's name"`
	StopReason string `json:"stop_reason" jsonschema:"why the model stopped"`
	Usage      Usage  `json:"usage" jsonschema:"tokens and cost"`
	ToolCalls  int    `json:"tool_calls" jsonschema:"how many tool calls the response has"`
	soFar
}

// Model is the model's name.
func (r ModelResponse) Model() string { return r.data().Model }

// StopReason is why the model stopped.
func (r ModelResponse) StopReason() string { return r.data().StopReason }

// Usage is the number of tokens and the cost.
func (r ModelResponse) Usage() Usage { return r.data().Usage }

// ToolCalls is how many tool calls the response has.
func (r ModelResponse) ToolCalls() int { return r.data().ToolCalls }
