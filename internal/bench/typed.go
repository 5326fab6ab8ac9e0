package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/belay-run/belay/internal/typeschema"
)

// typedPromises are the promises about typed tools.
func typedPromises() []promise {
	return []promise{
		{"typed-input", 2, typedInput},
		{"validate", 0.1, validate},
		{"validate-allocs", 0, validateAllocs},
	}
}

// orderInput is a typical input of a tool: six fields, one of them nested and one an enum.
type orderInput struct {
	Order    string `json:"order" jsonschema:"the order" pattern:"^ord_[0-9]+$"`
	Amount   int    `json:"amount" jsonschema:"in cents" minimum:"1" maximum:"1000000"`
	Reason   string `json:"reason" enum:"damaged,late,lost"`
	Note     string `json:"note,omitempty" jsonschema:"what the customer wrote" maxLength:"500"`
	Notify   bool   `json:"notify"`
	Customer struct {
		ID    int      `json:"id"`
		Email string   `json:"email"`
		Tags  []string `json:"tags,omitempty"`
	} `json:"customer"`
}

var orderBytes = []byte(`{"order":"ord_184467","amount":4200,"reason":"damaged","note":"The box arrived open, and one of the cups was broken.",` +
	`"notify":true,"customer":{"id":99127,"email":"ada@example.com","tags":["gold","returns"]}}`)

// validate returns the time to validate an ordinary input with the scanner of its type,
// divided by the time that the schema library needs.
func validate() (float64, error) {
	typ, err := typeschema.For(reflect.TypeFor[orderInput]())
	if err != nil {
		return 0, fmt.Errorf("describe the input: %w", err)
	}
	return ratio(accepts(typ), func(n int) {
		for range n {
			var value any
			must(json.Unmarshal(orderBytes, &value))
			must(typ.Resolved.Validate(value))
		}
	}), nil
}

func validateAllocs() (float64, error) {
	typ, err := typeschema.For(reflect.TypeFor[orderInput]())
	if err != nil {
		return 0, fmt.Errorf("describe the input: %w", err)
	}
	return allocs(accepts(typ)), nil
}

func accepts(typ *typeschema.Type) func(n int) {
	return func(n int) {
		for range n {
			if !typ.Checker.Accepts(orderBytes) {
				panic("refused")
			}
		}
	}
}

// typedInput returns the cost of validating and decoding an input, divided by the cost of
// decoding it with encoding/json alone.
func typedInput() (float64, error) {
	typ, err := typeschema.For(reflect.TypeFor[orderInput]())
	if err != nil {
		return 0, fmt.Errorf("describe the input: %w", err)
	}
	if !typ.Checker.Accepts(orderBytes) { // the agent makes the same check before a call
		return 0, fmt.Errorf("%s is refused", orderBytes)
	}
	return ratio(func(n int) {
		for range n {
			var in orderInput
			if !typ.Checker.Accepts(orderBytes) {
				panic("refused")
			}
			must(typ.Decode(orderBytes, &in))
		}
	}, func(n int) {
		for range n {
			var in orderInput
			must(json.Unmarshal(orderBytes, &in))
		}
	}), nil
}
