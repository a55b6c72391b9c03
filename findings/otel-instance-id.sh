#!/usr/bin/env bash
# opentelemetry-sdk 1.45.2: each process has another `service.instance.id`, although nobody asked for one.
# Guess: the default resource describes the service and the SDK, and two processes of it have the same attributes.
# Seen: a random UUID for each process, so short-lived processes that export metrics make new series for ever.
source "$(dirname "$0")/common.sh"
install opentelemetry-sdk==1.45.2
ask='from opentelemetry.sdk.resources import Resource
print(Resource.create().attributes.get("service.instance.id"))'
first=$(python -c "$ask") second=$(python -c "$ask")
printf 'two processes: %s, %s\n' "$first" "$second"
expect 'an id is there' yes "$([ -n "$first" ] && [ "$first" != None ] && echo yes || echo no)"
expect 'the ids differ' yes "$([ "$first" != "$second" ] && echo yes || echo no)"
