"""The OpenAPI document of a service: it names the columns of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deccs._version import __version__
from deccs.serving.answering import CSV, FIELDS, JSON, NPY, Served

KINDS: Mapping[str, list[str]] = {
    "number": ["number", "null"],
    "yes/no": ["boolean", "string", "number", "null"],
    "category": ["string", "number", "boolean", "null"],
    "ordered": ["string", "number", "null"],
    "date": ["string", "null"],
    "text": ["string", "null"],
}
ERRORS = {
    "400": "The body is not what its Content-Type says",
    "403": "Asked by a page of another site",
    "413": "More bytes, rows or values than one request may have",
    "415": "A Content-Type that is not read",
    "421": "A Host header that the service does not know",
    "422": "Rows that the model cannot read, such as with a missing column",
    "503": "Too busy, or stopping",
}


def document_for(served: Served, facts: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.1, of the facts that :func:`deccs.serving.facts.facts_of` has found."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Clusters by {facts['method']}",
            "version": __version__,
            "description": "Labels for new rows, the same as `deccs predict` gives. A row gets what it would "
            "get alone, whatever rows are sent with it.",
        },
        "paths": {
            "/v1/predict": {"post": predict_for(facts)},
            "/v1/model": {"get": page("model", "Columns, clusters, limits and versions")},
            "/health": {"get": page("health", "Whether the process is alive")},
            "/ready": {"get": page("ready", "Whether it takes requests; 503 while it stops")},
        },
        "components": {
            "schemas": {
                "Row": row_of(facts),
                "Rows": body_of(facts),
                "Answer": answer_of(served),
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string"}},
                },
            }
        },
    }


def predict_for(facts: Mapping[str, Any]) -> dict[str, Any]:
    """How rows are sent, and what comes back."""
    schema = {"schema": {"$ref": "#/components/schemas/Rows"}}
    binary = {"schema": {"type": "string", "format": "binary"}}
    fields = {
        "name": "fields",
        "in": "query",
        "description": "What to answer, separated by commas; all there is if it is left out. Labels and names "
        "alone take less time.",
        "style": "form",
        "explode": False,
        "schema": {"type": "array", "items": {"enum": list(facts["fields"])}},
    }
    error = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "operationId": "predict",
        "summary": "Labels for one row or many",
        "parameters": [fields],
        "requestBody": {
            "required": True,
            "content": {JSON: schema, CSV: {"schema": {"type": "string"}}, NPY: binary},
        },
        "responses": {
            "200": {
                "description": "A value for each row, in their order",
                "content": {JSON: {"schema": {"$ref": "#/components/schemas/Answer"}}, NPY: binary},
            },
            **{
                status: {"description": words, "content": error} for status, words in ERRORS.items()
            },
        },
    }


def page(name: str, summary: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": {JSON: {"schema": {"type": "object"}}}}
        },
    }


def row_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A row as an object; other columns are ignored."""
    columns = {column["name"]: {"type": KINDS[column["kind"]]} for column in facts["columns"]}
    return {"type": "object", "required": list(columns), "properties": columns}


def body_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The three ways to send rows."""
    n_columns = len(facts["columns"])
    as_list = {"type": "array", "minItems": n_columns, "maxItems": n_columns}
    row = {"oneOf": [{"$ref": "#/components/schemas/Row"}, as_list]}
    columns = {"type": "object", "additionalProperties": {"type": "array"}}
    ways = {"row": row, "rows": {"type": "array", "items": row}, "columns": columns}
    return {
        "oneOf": [
            {"type": "object", "required": [name], "properties": {name: way}}
            for name, way in ways.items()
        ]
    }


def answer_of(served: Served) -> dict[str, Any]:
    """What a reply holds."""
    number = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    kinds: dict[str, Any] = {
        "labels": {"type": ["integer", "null"], "minimum": -1},
        "names": {"type": ["string", "null"]},
        "probabilities": {"type": ["array", "null"], "items": {"type": "number"}},
        "confidence": number,
        "novelty": number,
    }
    lists = {
        name: {"type": "array", "items": kinds[name]} for name in FIELDS if name in served.fields
    }
    return {
        "type": "object",
        "properties": {**lists, "notes": {"type": "array", "items": {"type": "string"}}},
    }
