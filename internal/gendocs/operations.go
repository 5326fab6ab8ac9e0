package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// These are the parts of an OpenAPI document that clients depend on.
type (
	openAPI struct {
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	operation struct {
		Parameters []struct {
			Name     string  `json:"name"`
			In       string  `json:"in"`
			Required bool    `json:"required"`
			Schema   *schema `json:"schema"`
		} `json:"parameters"`
		RequestBody struct {
			Required bool    `json:"required"`
			Content  content `json:"content"`
		} `json:"requestBody"` //nolint:tagliatelle // OpenAPI's name
		Responses map[string]struct {
			Content content `json:"content"`
		} `json:"responses"`
	}
	content map[string]struct {
		Schema *schema `json:"schema"`
	}
	schema struct {
		Ref                  string             `json:"$ref"`
		Type                 any                `json:"type"`
		Enum                 []string           `json:"enum"`
		Items                *schema            `json:"items"`
		Properties           map[string]*schema `json:"properties"`
		AdditionalProperties *schema            `json:"additionalProperties"` //nolint:tagliatelle // JSON Schema's name
		Required             []string           `json:"required"`

		bool bool // it is only true or false
	}
)

func (s *schema) UnmarshalJSON(text []byte) error {
	if s.bool = text[0] != '{'; s.bool {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// lostOperations returns what clients of an older API lose with a newer one: operations, parameters, fields and their values, and
// results that were always there. It also returns what an operation wants that it did not want before.
func lostOperations(older, newer []byte) ([]string, error) {
	before, err := readOperations(older)
	if err != nil {
		return nil, fmt.Errorf("serve/openapi.json of the last release: %w", err)
	}
	now, err := readOperations(newer)
	if err != nil {
		return nil, err
	}
	lost := removed(before.offers, now.offers)
	for _, line := range slices.Sorted(maps.Keys(now.wants)) {
		if _, ok := before.wants[line]; !ok && slices.Contains(before.offers, now.wants[line]) {
			lost = append(lost, line)
		}
	}
	return lost, nil
}

// operations are what an API offers and what it wants, one thing in a line. What it wants is part of something that it offers.
type operations struct {
	offers []string
	wants  map[string]string
}

func readOperations(document []byte) (*operations, error) {
	var doc openAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	all := &operations{wants: map[string]string{}}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			all.add("http "+strings.ToUpper(method)+" "+path, doc.Paths[path][method])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		all.result("schema "+name, doc.Components.Schemas[name])
	}
	return all, nil
}

func (o *operations) add(name string, op operation) {
	o.offers = append(o.offers, name)
	input := func(what string, s *schema, required bool) {
		if required {
			o.wants[what+" is required"] = name
		}
		o.offer(what, s, func(of, field string) { o.wants[field+" is required"] = of })
	}
	for _, p := range op.Parameters {
		input(name+": "+p.In+" "+p.Name, p.Schema, p.Required)
	}
	for kind, c := range op.RequestBody.Content {
		input(name+": "+kind, c.Schema, op.RequestBody.Required)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		o.offers = append(o.offers, name+": answers "+status)
		for kind, c := range op.Responses[status].Content {
			o.result(name+": answers "+status+" "+kind, c.Schema)
		}
	}
}

// result adds what a client gets.
func (o *operations) result(name string, s *schema) {
	o.offer(name, s, func(_, field string) { o.offers = append(o.offers, field+" is always there") })
}

// offer adds a value and all that is in it. It calls the function with each required field and what the field belongs to.
func (o *operations) offer(name string, s *schema, required func(of, field string)) {
	if s == nil {
		s = new(schema) // any content
	}
	line := fmt.Sprintf("%s %v%s", name, s.Type, s.Ref)
	o.offers = append(o.offers, line)
	for _, value := range s.Enum {
		o.offers = append(o.offers, fmt.Sprintf("%s may be %q", name, value))
	}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		o.offer(name+"."+field, s.Properties[field], required)
	}
	for _, field := range s.Required {
		required(line, name+"."+field)
	}
	if s.Items != nil {
		o.offer(name+"[]", s.Items, required)
	}
	if others := s.AdditionalProperties; others != nil && !others.bool {
		o.offer(name+".*", others, required)
	}
}
