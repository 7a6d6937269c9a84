import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { READ_IN_PLACE_BYTES_MAX, THREADS_MAX } from '../../adapters/ingestBodies/bodyReader.js';
import { ANSWER_MS_MAX } from '../../adapters/ingestBodies/threadHandle.js';
import { PAGES_MAX } from '../../adapters/invoices/pdf.js';
import { ANSWER_BYTES_MAX, TOTAL_MS } from '../../adapters/outbound/safeFetch.js';
import { IMPORT_BYTES_MAX, UPLOADS_MAX } from '../../api/billing/imports/endpoints.js';
import { EXPORT_DAYS_MAX } from '../../api/events/events/endpoints.js';
import { BODY_BYTES_UNDER_WAY_MAX, REQUESTS_MAX } from '../../api/limits/admission.js';
import { PAGE_LIMIT_MAX, PAGE_OFFSET_MAX } from '../../api/paging.js';
import { BODY_TIME_MAX_MS, JSON_BODY_BYTES_MAX } from '../../api/pipeline/body.js';
import { URL_BYTES_MAX } from '../../api/pipeline/requestHead.js';
import { DELIVERIES_LIMIT_MAX } from '../../api/webhooks/deliveries/wire.js';
import * as event from '../../domain/events/event.js';
import { RECORD_CHARS_MAX } from '../../domain/events/observations/observationRecord.js';
import { JSON_DEPTH_MAX } from '../../domain/parseJson.js';
import { RULES_MAX } from '../../domain/policies/enforcement/rule.js';
import { PROGRAM_SIZE_MAX, PROGRAM_SIZE_TOTAL_MAX } from '../../domain/policies/inspectPatterns.js';
import { PREVIEW_EVENTS_MAX } from '../../domain/policies/judge.js';
import { AUTOMATA_MAX, ENTRIES_MAX, STATES_MAX } from '../../domain/policies/patternAutomata.js';
import * as policy from '../../domain/policies/policy.js';
import { ANSWER_CHARS_MAX, attemptsMax } from '../../domain/webhooks/retrySchedule.js';
import { parseConfig } from '../../platform/config.js';
import { LIMIT_SETTINGS } from '../../platform/limitSettings.js';
import { CONNECTIONS_MAX, HTTP_LIMITS } from '../../platform/serverLimits.js';
import { PROMPTS_MAX } from '../../sdk/js/src/patterns.js';
import { WORKSPACES_MAX } from '../../usecases/access/workspaceChanges.js';
import { COMPLETED_MAX } from '../../usecases/events/joinObservations.js';
import { QUEUE_ROWS_MAX } from '../../usecases/events/waitingRequests.js';
import { WEBHOOK_MESSAGE_DAYS } from '../../usecases/installation/retention.js';
import { INVOICE_BYTES_MAX } from '../../usecases/invoices/invoiceDeps.js';
import { WEBHOOK_ENDPOINTS_MAX } from '../../usecases/webhooks/endpoints.js';
import { WEBHOOK_PACE } from '../../usecases/webhooks/sendDueWebhooks.js';

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../../docs/limits.md'), 'utf8');
const ROWS = [...PAGE.matchAll(/^\| (.+) \|$/gm)].map(([, row = '']) => row.split(' | '));

/** The text of the page about a thing. */
function limitOf(what: string): string | undefined {
  return ROWS.find(([name]) => name === what)?.[1];
}

const count = (value: number | bigint) => value.toLocaleString('en-US');
const mebibytes = (bytes: number) => `${bytes / 1_048_576} MiB`;
const seconds = (milliseconds: number) => `${milliseconds / 1_000} s`;

describe('docs/limits.md', () => {
  it('names every setting of limits with its default', () => {
    const listed = ROWS.filter((row) => row.length === 5 && row[4]?.startsWith('`')).map((row) => [
      row[4]?.replaceAll('`', ''),
      row[1]?.replaceAll('`', ''),
    ]);
    for (const [name, { shownDefault }] of Object.entries(LIMIT_SETTINGS)) {
      if (name === 'RATE_LIMITS' || name === 'TRUSTED_PROXIES') expect(PAGE).toContain(`\`${name}`);
      else expect(listed, name).toContainEqual([name, shownDefault]);
    }
    for (const [name] of listed) expect(Object.keys(LIMIT_SETTINGS)).toContain(name);
  });

  it('names what is refused under load, as the code has it', () => {
    const expected = {
      'requests under way that send calls, of an instance': count(REQUESTS_MAX.ingest),
      'other requests under way, of an instance': count(REQUESTS_MAX.other),
      'bodies of calls under way, of an instance': mebibytes(BODY_BYTES_UNDER_WAY_MAX),
      'calls that wait to be stored, of an instance': `${count(QUEUE_ROWS_MAX)}, an organization half of what is free`,
      [`bodies of calls over ${READ_IN_PLACE_BYTES_MAX / 1_024} KB being read, of an instance`]: `a core less than there are, 1 to ${THREADS_MAX}; organizations take turns`,
      'time to read such a body': seconds(ANSWER_MS_MAX),
      'bills being uploaded, of an instance': count(UPLOADS_MAX),
      'connections, of an instance': count(CONNECTIONS_MAX),
      'a request’s head': `${HTTP_LIMITS.maxHeaderSize / 1_024} KB`,
      'time for a head': seconds(HTTP_LIMITS.headersTimeout),
      'time for a body that is read at once': seconds(BODY_TIME_MAX_MS),
      'time for a whole request, an upload too': seconds(HTTP_LIMITS.requestTimeout),
    };
    for (const [what, limit] of Object.entries(expected))
      expect(limitOf(what.replace('’', "'")), what).toBe(limit);
  });

  it('names how many of a thing an organization can have, as the code has it', () => {
    const expected = {
      'enforcement rules that are not removed': count(RULES_MAX),
      'webhook endpoints': count(WEBHOOK_ENDPOINTS_MAX),
      'workspaces that are not archived': count(WORKSPACES_MAX),
    };
    for (const [what, limit] of Object.entries(expected)) expect(limitOf(what), what).toBe(limit);
  });

  it('names what holds for webhooks, as the code has it', () => {
    const expected = {
      'attempts of a message, each time that its delivery is begun': count(attemptsMax()),
      'attempts at one endpoint at once': count(WEBHOOK_PACE.lanes),
      'time for an attempt': seconds(TOTAL_MS),
      'of an answer that is read': `${ANSWER_BYTES_MAX / 1_024} KB`,
      'of an answer that is kept': `${count(ANSWER_CHARS_MAX)} characters`,
      'messages and their attempts are kept': `${count(WEBHOOK_MESSAGE_DAYS)} days`,
    };
    for (const [what, limit] of Object.entries(expected)) expect(limitOf(what), what).toBe(limit);
    // A repeat of an attempt that its process left without a word never meets the attempt itself.
    expect(WEBHOOK_PACE.leaseSeconds * 1_000).toBeGreaterThan(2 * TOTAL_MS);
  });

  it('names what a policy can hold, as the code has it', () => {
    const expected = {
      'approved models': `${count(policy.MODELS_MAX)} of ${policy.MODEL_CHARS_MAX} characters`,
      'banned patterns': `${count(policy.REGEXES_MAX)} of ${policy.REGEX_CHARS_MAX} characters`,
      'prefixes of keys, environments': `${policy.PREFIXES_MAX} each, of ${policy.PREFIX_CHARS_MAX} characters`,
      threshold: `${count(policy.THRESHOLD_CENTS_MAX)} cents`,
      'of a prompt that is searched': `${policy.PROMPT_SCAN_CHARS} characters`,
      'prompts of a call that are searched': count(policy.PROMPTS_SCANNED_MAX),
      'prompts of a call that a wrapper searches': count(PROMPTS_MAX),
      'tables of patterns for wrappers: states of one, entries of all, tables for a character': `${count(STATES_MAX)}; ${count(ENTRIES_MAX)}; ${AUTOMATA_MAX}`,
      'steps that a pattern compiles to; all of a policy': `${count(PROGRAM_SIZE_MAX)}; ${count(PROGRAM_SIZE_TOTAL_MAX)}`,
      'events that a preview looks at': count(PREVIEW_EVENTS_MAX),
    };
    for (const [what, limit] of Object.entries(expected)) expect(limitOf(what), what).toBe(limit);
  });

  it('names sizes as the code has them', () => {
    const expected = {
      'body of ingest, on the wire and inflated': `${mebibytes(parseConfig({}).ingestMaxBodyBytes)} (\`INGEST_MAX_BODY_BYTES\`)`,
      'items of a request of ingest': count(event.INGEST_ITEMS_MAX),
      'resources of an OTLP request; scopes': `${count(event.INGEST_ITEMS_MAX)} each`,
      'spans of a trace that are compared with each other': `${count(event.TRACE_SPANS_MAX)}, those that came last`,
      'other JSON bodies': mebibytes(JSON_BODY_BYTES_MAX),
      "a bill's file": `${IMPORT_BYTES_MAX / 1_073_741_824} GiB`,
      "an invoice's file": mebibytes(INVOICE_BYTES_MAX),
      'pages of an invoice': count(PAGES_MAX),
      'nesting of JSON': `${JSON_DEPTH_MAX} levels`,
      address: `${URL_BYTES_MAX / 1_024} KB`,
      'rows of a page': count(PAGE_LIMIT_MAX),
      'offset of a page': count(PAGE_OFFSET_MAX),
      'window of an export': `${EXPORT_DAYS_MAX} days`,
      model: `${event.MODEL_CHARS_MAX} characters`,
      labels: `${event.LABEL_CHARS_MAX} characters`,
      ids: `${event.ID_CHARS_MAX} characters`,
      'payload of an event': `${event.PAYLOAD_BYTES_MAX / 1_024} KB`,
      'parts of a call of older Langfuse clients, kept until the call is whole': `${count(RECORD_CHARS_MAX)} characters each`,
      'earlier calls that one request with labels of traces completes': count(COMPLETED_MAX),
      'of it, from a resource or scope: service block, tool input, tool output': `${event.REPEATED_BYTES_MAX / 1_024} KB each`,
      'tokens of a class': count(event.TOKENS_MAX),
      'reported cost of a call': `${count(event.COST_USD_MAX)} USD`,
      'duration of a call': `${count(event.DURATION_MS_MAX)} ms`,
      'deliveries of a page': count(DELIVERIES_LIMIT_MAX),
    };
    for (const [what, limit] of Object.entries(expected)) expect(limitOf(what), what).toBe(limit);
    const section = PAGE.slice(PAGE.indexOf('## Sizes'));
    expect([...section.matchAll(/^\| (?!what|-)/gm)]).toHaveLength(Object.keys(expected).length);
  });
});
