/**
 * Sends the documented example of every operation to an installation with the demo loaded, in one walk.
 * RECORD_EXAMPLES=1 writes the answers to data/example-answers.json, which the document shows.
 */

import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../api/app.js';
import { EXAMPLES } from '../../api/examples/examples.js';
import { buildOpenApi } from '../../api/openapi.js';
import { loadDemo } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { findUuid } from '../../domain/ids.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import { createLogger } from '../../platform/logger.js';
import { validateJson } from '../api/support/jsonSchema.js';
import { makeDemo } from '../api/support/operations/demo.js';
import { type RawAnswer, send } from '../api/support/requests.js';
import { startOpenAiBilling } from '../fakes/billing/openAiBilling.js';
import type { BillingFake } from '../fakes/billing/reportServer.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { testConnectors } from '../support/connectors.js';
import { storeCredit } from '../support/credits.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';
import {
  type ExampleRequest,
  type ExampleSource,
  type ListedOperation,
  operationsOf,
  requestOf,
  valueAt,
} from '../support/exampleRequests.js';
import { openaiTruth } from '../support/fetchedBills.js';
import { testOutbound } from '../support/outbound.js';
import { yesterday } from '../support/plantedFaults.js';
import { proposePrice } from '../support/proposals.js';
import { shortened } from '../support/shortenedAnswer.js';

/** The operations whose order matters. All others precede them, in the order of the document. */
const LAST = [
  ...['startGapRun', 'cancelGapRun', 'getGapRun', 'startRepricing', 'cancelRepricing', 'getRepricing'],
  ...['testWebhookEndpoint', 'redeliverWebhook', 'listWebhookDeliveries'],
  ...['dismissReviewItem', 'confirmReviewItem', 'getDispute', 'createClaim', 'getClaim', 'listClaims'],
  ...['getClaimEvidenceJson', 'getClaimEvidenceCsv', 'getClaimEvidencePdf', 'getClaimEvidencePack'],
  ...['submitClaim', 'snoozeClaim', 'rejectClaimCredit', 'setClaimStatus', 'draftTicket', 'getTicketDraft'],
  ...['confirmReviewItem', 'createClaim', 'confirmReviewItem', 'createClaim', 'mergeClaims', 'discardClaim'],
  ...['listDisputes', 'resolveDispute', 'resolveDisputeByPatch', 'confirmReviewItem', 'resolveDisputeByPut'],
  ...['rotateKey', 'revokeKey', 'archiveWorkspace', 'removeEnforcementRule', 'deleteWebhookEndpoint'],
  ...['correctInvoiceLine', 'confirmInvoice', 'retryInvoice', 'deleteInvoice'],
  ...['createManagementReport', 'listReports', 'getReport', 'listReportRuns', 'getReportRun'],
  ...['putReportSchedule', 'listReportSchedules', 'getReportSchedule', 'deleteReportSchedule'],
  ...['endContractRate', 'endPriceOverride', 'deleteBillingConnection', 'closePeriod'],
];

let api: TestApi;
let engine: TestEngine;
let openai: BillingFake;
let document: object;
let operations: ReadonlyMap<string, ListedOperation>;
const answers = new Map<string, RawAnswer>();

const buildDocument = () => buildOpenApi(ENDPOINTS, {} as Parameters<typeof buildOpenApi>[1]);

beforeAll(async () => {
  document = buildDocument();
  operations = operationsOf(document);
  const { credentials, settings } = bodyOf('createBillingConnection');
  openai = await startOpenAiBilling({
    truth: openaiTruth(settings.account),
    adminKey: credentials.admin_key,
  });
  const connectors = testConnectors({ openai: openai.origin });
  // The receiver of the example's webhooks resolves to this machine, without a listener at its port.
  const outbound = testOutbound(['hooks.example.com:443'], {
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  });
  api = await startTestApi({ connectors, outbound });
  engine = await startTestEngine(api.database.database, { connectors, readsInvoices: true });
  await engine.startWorker();
  const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));
  const demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
  // No feed is read here; one proposal is applied, and one dismissed.
  await proposePrice(api.orgDb, 'gpt-4o-mini');
  await proposePrice(api.orgDb, 'gpt-4o');
}, 300_000);

afterAll(async () => {
  await engine?.close();
  await api?.close();
  await openai?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the test of the schemas proves the shape
function bodyOf(operationId: string): any {
  return operations.get(operationId)?.requestBody?.content['application/json']?.example;
}

async function sendExample(operationId: string, query: Record<string, string> = {}): Promise<RawAnswer> {
  const operation = operations.get(operationId);
  if (!operation) throw new Error(`there is no operation ${operationId}`);
  const request: ExampleRequest = await requestOf(operation, query, readSource);
  return send(api, request);
}

/** A value of another operation's answer: a GET is sent each time, any other operation once. */
async function readSource({ operationId, pointer, query }: ExampleSource): Promise<unknown> {
  const isRead = operations.get(operationId)?.method === 'get';
  const known = isRead ? undefined : answers.get(operationId);
  const answer = known ?? (await sendExample(operationId, query));
  if (!isRead) answers.set(operationId, answer);
  const value = valueAt(answer.body, pointer);
  if (value === undefined)
    throw new Error(`${operationId} has nothing at ${pointer}: ${answer.status} ${answer.bytes}`);
  return value;
}

/** The gap run would propose it, once a later bill of the provider contains a credit. The demo has none. */
async function proposeCredit(): Promise<void> {
  const claim = answers.get('createClaim')?.body.id;
  await storeCredit(api.orgDb, findUuid('clm', claim) ?? '', { cents: 100 });
}

describe('the example of every operation', () => {
  it('is there', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual(ENDPOINTS.map(({ operationId }) => operationId).sort());
  });

  it('fits the schemas of its parameters and of its body', () => {
    for (const { operationId, parameters = [], requestBody } of operations.values()) {
      for (const { name, in: place, required, example, schema } of parameters) {
        if (required) expect(example, `${operationId} ${name}`).toBeDefined();
        if (place === 'header') expect(example, `${operationId} ${name}`).toBeUndefined();
        if (example !== undefined)
          expect(validateJson(document, schema, example), `${operationId} ${name}`).toEqual([]);
      }
      const contents = Object.values(requestBody?.content ?? {});
      const bodies = contents.filter(({ example }) => example !== undefined);
      if (requestBody?.required) expect(bodies.length, operationId).toBeGreaterThan(0);
      for (const { schema, example } of bodies)
        expect(validateJson(document, schema, example), operationId).toEqual([]);
    }
  });

  it('succeeds on the demo, in an order that makes things before it removes them', async () => {
    const faults: string[] = [];
    const first = [...operations.keys()].filter((id) => !LAST.includes(id));
    for (const operationId of [...first, ...LAST]) {
      if (operationId === 'rejectClaimCredit') await proposeCredit();
      // The demo's data are loaded into the organization of the test.
      if (operationId === 'removeDemo') await makeDemo({ api });
      const answer = await sendExample(operationId).catch((error: Error) => error);
      if (answer instanceof Error) {
        faults.push(`${operationId}: ${answer.message}`);
        continue;
      }
      answers.set(operationId, answer);
      const isDocumented = operations.get(operationId)?.responses[answer.status] !== undefined;
      if (answer.status >= 300 || !isDocumented)
        faults.push(`${operationId}: ${answer.status} ${answer.bytes.subarray(0, 500)}`);
      const type = String(answer.headers['content-type']);
      const schema = operations.get(operationId)?.responses[answer.status]?.content?.[type]?.schema;
      if (schema && type === 'application/json')
        faults.push(
          ...validateJson(document, schema, answer.body).map(
            (fault) => `${operationId}: ${fault.slice(0, 500)}`,
          ),
        );
    }
    expect(faults).toEqual([]);
    expect([...answers.keys()].sort()).toEqual([...operations.keys()].sort());
    if (process.env.RECORD_EXAMPLES === '1') recordAnswers();
  }, 300_000);
});

function recordAnswers(): void {
  const recorded = [...operations.values()].flatMap(({ operationId, responses }) => {
    const answer = answers.get(operationId);
    const schema = answer && responses[answer.status]?.content?.['application/json']?.schema;
    if (!schema || answer.headers['content-type'] !== 'application/json') return [];
    const body = shortened(answer.body, (value) => validateJson(document, schema, value).length === 0);
    return [[operationId, { status: answer.status, body }]];
  });
  const file = new URL('../../data/example-answers.json', import.meta.url);
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(recorded), null, 1)}\n`);
}

describe('the example of every JSON answer', () => {
  it('is there and fits its schema', () => {
    for (const { operationId, responses } of operationsOf(buildDocument()).values())
      for (const [status, { content }] of Object.entries(responses)) {
        const json = content?.['application/json'];
        if (Number(status) >= 300 || !json) continue;
        const others = Object.keys(responses).filter((other) => Number(other) < 300 && other !== status);
        if (json.example === undefined && others.length > 0) continue;
        expect(json.example, `${operationId} ${status}`).toBeDefined();
        expect(validateJson(document, json.schema, json.example), operationId).toEqual([]);
      }
  });
});
