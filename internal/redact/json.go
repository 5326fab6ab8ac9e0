package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns a JSON value without the secrets in its texts. The name of a field, or the text
// before a value in a list, can show that the value is a secret. A value without secrets is
// returned as it is.
func JSON(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return value
	}
	decode := json.NewDecoder(bytes.NewReader(value))
	decode.UseNumber()
	var v any
	if err := decode.Decode(&v); err != nil {
		return encoded(Text(string(value)))
	}
	if clean, found := withoutSecrets(v); found {
		return encoded(clean)
	}
	return value
}

// withoutSecrets replaces the secrets in a decoded value. found reports whether there were any.
func withoutSecrets(v any) (clean any, found bool) {
	switch v := v.(type) {
	case string:
		text := Text(v)
		return text, text != v
	case []any:
		for i := range v {
			part, has := withoutSecrets(v[i])
			v[i], found = part, found || has
		}
		whole, has := asText(v)
		return whole, found || has
	case map[string]any:
		for name := range v {
			part, has := withoutSecrets(v[name])
			if number, ok := part.(json.Number); ok && Name(name) {
				part = number.String() // as a text it can be replaced
			}
			field, hasField := asText(map[string]any{name: part})
			if one, ok := field.(map[string]any); ok && hasField {
				v[name], found = one[name], true
			} else if has {
				v[name], found = part, true
			}
		}
	}
	return v, found
}

// asText replaces the secrets that only the text around them shows. A value whose text is no JSON
// afterwards stays.
func asText(v any) (clean any, found bool) {
	before := encoded(v)
	after := Text(string(before))
	if after == string(before) {
		return v, false
	}
	decode := json.NewDecoder(bytes.NewReader([]byte(after)))
	decode.UseNumber()
	if err := decode.Decode(&clean); err != nil {
		return v, false
	}
	return clean, true
}

// encoded returns a value as JSON.
func encoded(v any) json.RawMessage {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(v) //nolint:errchkjson // it was decoded from JSON
	return bytes.TrimSpace(out.Bytes())
}
