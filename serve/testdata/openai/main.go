// Command openai is a client of belay serve that uses the official Go SDK of OpenAI. It prints what it got. client.mjs does
// the same with the JavaScript SDK, and a test compares both with what they should get.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	if err := run(context.Background(), openai.NewClient()); err != nil { // the key and the address are in the environment
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	toolTask     = `call write {"path": "notes.md", "content": "x"}`
	approvalTask = `call write {"path": "other.md", "content": "x"}`
)

func chat(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func response(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func run(ctx context.Context, client openai.Client) error {
	models, err := client.Models.List(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range models.Data {
		names = append(names, m.ID)
	}
	fmt.Println("models:", strings.Join(names, " "))
	for _, step := range []func(context.Context, openai.Client) error{chats, streamedChat, respond, streamedResponse, failures, approvals} {
		if err := step(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

func chats(ctx context.Context, client openai.Client) error {
	one, err := client.Chat.Completions.New(ctx, chat("main", "hello"))
	if err != nil {
		return err
	}
	fmt.Println("chat:", one.Choices[0].Message.Content, one.Choices[0].FinishReason, one.Usage.TotalTokens)
	var told struct{ Session string }
	if err := json.Unmarshal([]byte(one.JSON.ExtraFields["belay"].Raw()), &told); err != nil {
		return err
	}
	next := chat("main", "hello")
	next.Messages = append(next.Messages, one.Choices[0].Message.ToParam(), openai.UserMessage("again"))
	two, err := client.Chat.Completions.New(ctx, next, option.WithHeader("Belay-Session", told.Session))
	if err != nil {
		return err
	}
	fmt.Println("chat in the session:", two.Choices[0].Message.Content)
	tool, err := client.Chat.Completions.New(ctx, chat("main", toolTask))
	if err != nil {
		return err
	}
	fmt.Println("chat with a tool:", tool.Choices[0].Message.Content, tool.Choices[0].FinishReason)
	return nil
}

func streamedChat(ctx context.Context, client openai.Client) error {
	params := chat("main", "one two three")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	text, finish, parts, tokens := "", "", 0, int64(0)
	for stream.Next() {
		chunk := stream.Current()
		tokens += chunk.Usage.TotalTokens
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				text += c.Delta.Content
				parts++
			}
			finish += c.FinishReason
		}
	}
	if stream.Err() != nil {
		return stream.Err()
	}
	fmt.Println("streamed chat:", text, finish, tokens, "in parts:", parts > 1)
	return nil
}

func respond(ctx context.Context, client openai.Client) error {
	one, err := client.Responses.New(ctx, response("main", "hello"))
	if err != nil {
		return err
	}
	fmt.Println("response:", one.OutputText(), one.Status, one.Usage.TotalTokens)
	next := response("main", "again")
	next.PreviousResponseID = openai.String(one.ID)
	two, err := client.Responses.New(ctx, next)
	if err != nil {
		return err
	}
	fmt.Println("next response:", two.OutputText(), two.Status, two.Conversation.ID == one.Conversation.ID)
	third, err := client.Responses.New(ctx, next)
	if err != nil {
		return err
	}
	fmt.Println("branch:", third.OutputText(), third.Conversation.ID != one.Conversation.ID)
	read, err := client.Responses.Get(ctx, one.ID, responses.ResponseGetParams{})
	if err != nil {
		return err
	}
	fmt.Println("read:", read.OutputText(), read.Status)
	tool, err := client.Responses.New(ctx, response("main", toolTask))
	if err != nil {
		return err
	}
	fmt.Println("response with a tool:", tool.OutputText(), tool.Status)
	return nil
}

func streamedResponse(ctx context.Context, client openai.Client) error {
	stream := client.Responses.NewStreaming(ctx, response("main", "one two three"))
	var kinds []string
	text, status := "", ""
	for stream.Next() {
		e := stream.Current()
		if !slices.Contains(kinds, e.Type) {
			kinds = append(kinds, e.Type)
		}
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
		if e.Type == "response.completed" {
			status = string(e.Response.Status) + " " + e.Response.OutputText()
		}
	}
	if stream.Err() != nil {
		return stream.Err()
	}
	fmt.Println("streamed response:", text, "/", status)
	fmt.Println("events:", strings.Join(kinds, " "))
	return nil
}

func failures(ctx context.Context, client openai.Client) error {
	tell := func(what string, err error) error {
		var e *openai.Error
		if !errors.As(err, &e) {
			return fmt.Errorf("%s: %w is not an error of the API", what, err)
		}
		fmt.Println(what+":", e.StatusCode, e.Type, e.Code, e.Param)
		return nil
	}
	_, err := client.Chat.Completions.New(ctx, chat("nobody", "hello"))
	if err := tell("an unknown agent", err); err != nil {
		return err
	}
	hot := chat("main", "hello")
	hot.Temperature = openai.Float(0.2)
	_, err = client.Chat.Completions.New(ctx, hot)
	if err := tell("an unsupported field", err); err != nil {
		return err
	}
	long := response("main", "hello")
	long.MaxOutputTokens = openai.Int(5)
	_, err = client.Responses.New(ctx, long)
	if err := tell("another unsupported field", err); err != nil {
		return err
	}
	_, err = client.Responses.New(ctx, response("main", "hello"), option.WithAPIKey("wrong"))
	return tell("a wrong key", err)
}

func approvals(ctx context.Context, client openai.Client) error {
	waiting, err := client.Chat.Completions.New(ctx, chat("careful", approvalTask))
	if err != nil {
		return err
	}
	fmt.Println("waiting chat:", waiting.Choices[0].FinishReason, strings.Contains(waiting.Choices[0].Message.Content, "needs approval (approval ap"))
	parked, err := client.Responses.New(ctx, response("careful", approvalTask))
	if err != nil {
		return err
	}
	var told struct{ Approvals []string }
	if err := json.Unmarshal([]byte(parked.JSON.ExtraFields["belay"].Raw()), &told); err != nil {
		return err
	}
	fmt.Println("waiting response:", parked.Status, parked.IncompleteDetails.Reason, strings.Contains(parked.OutputText(), told.Approvals[0]))
	next := response("careful", "again")
	next.PreviousResponseID = openai.String(parked.ID)
	_, err = client.Responses.New(ctx, next)
	var e *openai.Error
	fmt.Println("a message while it waits:", errors.As(err, &e) && e.StatusCode == 409, e.Code)
	var approval struct{ Hash string }
	if err := client.Get(ctx, "approvals/"+told.Approvals[0], nil, &approval); err != nil {
		return err
	}
	if err := client.Post(ctx, "approvals/"+told.Approvals[0]+"/decision", map[string]any{"hash": approval.Hash, "allow": true}, nil); err != nil {
		return err
	}
	for {
		now, err := client.Responses.Get(ctx, parked.ID, responses.ResponseGetParams{})
		if err != nil {
			return err
		}
		if now.Status != "in_progress" && now.Status != "incomplete" {
			fmt.Println("after the approval:", now.OutputText(), now.Status)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
