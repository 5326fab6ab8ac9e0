// Package api has the requests and responses of the HTTP API of "belay serve". Package serve
// decodes and sends them, and package client sends and decodes them, so that both sides use
// the same Go types.
//
// The input of an operation has the name of the operation: [StartTurn] is the input of
// startTurn. The tag `in` says where a field is sent: in the path, in the query, or, without
// the tag, in the JSON body. The other tags describe the field in the OpenAPI document. A
// field that has its zero value is not sent, unless it is required.
//
// # Errors
//
// Every error of the API is a [Problem].
package api
