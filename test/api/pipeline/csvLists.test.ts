import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ENDPOINTS } from '../../../api/app.js';
import { csvList, tableOfList } from '../../../api/csv.js';
import type { EndpointResponse } from '../../../api/endpoint.js';
import { csvListAnswer, firstPageQuery } from '../../../api/pipeline/csvList.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill, runGaps } from '../../support/bills.js';
import { daysAgo } from '../../support/publishedDays.js';
import { startWorkingApi } from '../../support/workingApi.js';
import { addressOf } from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { anEvent, ingest, send } from '../support/requests.js';

// biome-ignore lint/suspicious/noExplicitAny: answers are checked by their schemas; the test reads them generally
type Json = any;

const LISTS = ENDPOINTS.filter(({ csv }) => typeof csv === 'object');

let place: Awaited<ReturnType<typeof startOperationsPlace>>;
let owner: TestOrganization;
/** With a bill that was compared. */
let billed: TestApi;
beforeAll(async () => {
  place = await startOperationsPlace();
  owner = await place.api.addOrganization();
  billed = await startWorkingApi();
  const day = daysAgo(5);
  const call = anEvent({ model: 'gpt-6-sol', timestamp: `${day}T12:00:00Z`, input_tokens: 100_000 });
  await ingest(billed, [call]);
  const bill = `date,model,line_item,token_class,quantity,amount_usd,api_key\n${day},gpt-6-sol,,input,2000000,4,\n`;
  await importBill(billed, bill, { provider: 'openai', account: 'org-1' });
  expect((await runGaps(billed)).status).toBe('succeeded');
}, 300_000);
afterAll(async () => {
  await place?.close();
  await billed?.close();
});

/** Lists of what a run has compared. */
const COMPARED = ['exploreGaps', 'getCoverage', 'listMatches'];

/** A row of JSON as a spreadsheet shows it, by its columns: written again here, apart from the writer. */
function flat(row: Json, path = ''): Record<string, string> {
  const cells: Record<string, string> = {};
  for (const [key, value] of Object.entries(row)) {
    const name = path + key;
    if (value === null) cells[name] = '';
    else if (Array.isArray(value)) {
      if (value.every((one) => typeof one !== 'object')) cells[name] = value.join('; ');
    } else if (typeof value === 'object') Object.assign(cells, flat(value, `${name}_`));
    else cells[name] = String(value);
  }
  return cells;
}

/** Names of the cells that are JSON numbers. */
function numbersOf(row: Json, path = ''): Set<string> {
  const names = Object.entries(row).flatMap(([key, value]) => {
    if (typeof value === 'number') return [path + key];
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? [...numbersOf(value as Json, `${path}${key}_`)]
      : [];
  });
  return new Set(names);
}

describe('format=csv of a list', () => {
  it('is there for every list that people read', () => {
    expect(LISTS.map(({ operationId }) => operationId).sort()).toEqual([
      'exploreGaps',
      'getCoverage',
      'getDashboardBreakdown',
      'getFinding',
      'getIngestHealth',
      'getInvoice',
      'getPrepaidLedger',
      'getReviewQueue',
      'getUsageSummary',
      'listAlerts',
      'listBillingConnections',
      'listBillingImports',
      'listBillingSyncs',
      'listClaims',
      'listContractRates',
      'listDisputes',
      'listEnforcementRules',
      'listEvents',
      'listFindings',
      'listGapRuns',
      'listInvoiceRuns',
      'listInvoices',
      'listKeys',
      'listMatches',
      'listPeriods',
      'listPriceOverrides',
      'listPrices',
      'listReportRuns',
      'listReportSchedules',
      'listReports',
      'listRepricings',
      'listSavingsCalls',
      'listSavingsRuns',
      'listSessions',
      'listUnpricedModels',
      'listWebhookDeliveries',
      'listWebhookEndpoints',
      'listWorkspaces',
    ]);
  });

  it.each(LISTS)('$operationId has the rows and figures of its JSON', async (endpoint) => {
    const operation = OPERATIONS[endpoint.operationId];
    if (!operation || typeof endpoint.csv !== 'object') throw new Error('a list has an operation');
    const isCompared = COMPARED.includes(endpoint.operationId);
    const api = isCompared ? billed : place.api;
    const key = isCompared ? billed.adminKey : owner.adminKey;
    const path = isCompared ? endpoint.path : addressOf(operation, await operation.request(place, owner));
    const json = await send(api, { path, key });
    expect(json.status, JSON.stringify(json.body)).toBe(200);
    const rows = json.body[endpoint.csv.field] as Json[];
    // Nothing is bought ahead here.
    if (endpoint.operationId !== 'getPrepaidLedger') expect(rows.length).toBeGreaterThan(0);
    const csv = await send(api, { path: `${path}${path.includes('?') ? '&' : '?'}format=csv`, key });
    expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    expect(csv.headers['content-disposition']).toMatch(/^attachment; filename="[a-z-]+\.csv"$/);
    const read = parse(csv.bytes, { columns: true }) as Record<string, string>[];
    expect(read).toHaveLength(rows.length);
    for (const [at, row] of rows.entries()) {
      const cells = flat(row);
      const numbers = numbersOf(row);
      const line = read[at] as Record<string, string>;
      for (const [name, cell] of Object.entries(line)) {
        const plain = cell.replace(/^'/, '');
        if (numbers.has(name)) expect(Number(plain), name).toBe(Number(cells[name]));
        else expect(plain, name).toBe((cells[name] ?? '').replace(/^'/, ''));
        if (numbers.has(name)) expect(cell, name).not.toMatch(/e/);
      }
      expect(Object.keys(line).length).toBeGreaterThan(4);
    }
  });

  it('refuses other formats', async () => {
    const { status, body } = await place.api.get('/api/v1/alerts?format=xml');
    expect([status, body.code]).toEqual([400, 'invalid_parameter']);
  });
});

const ROW = z.object({
  id: z.string(),
  usd: z.number().nullable(),
  parts: z.object({ rate: z.number(), deep: z.object({ deeper: z.object({ x: z.string() }) }) }).nullable(),
  reasons: z.array(z.string()),
  lines: z.array(z.object({ a: z.string() })),
});
const LIST = csvList('things', 'things', ROW);

describe('a table of a list', () => {
  it('has a column for each single value, and runs nothing in a spreadsheet', () => {
    const things = [
      { id: '=1+1', usd: 1e-9, parts: null, reasons: ['a', 'b'], lines: [] },
      { id: 'x', usd: -1234567890.125, parts: { rate: 1e21 }, reasons: [], lines: [] },
      { id: 'y', usd: -1.5e-11, parts: { rate: 0 }, reasons: [], lines: [] },
    ];
    const table = tableOfList(LIST, { things });
    expect(table.filename).toBe('things.csv');
    expect(table.header + table.rows()).toBe(
      `id,usd,parts_rate,reasons\r\n'=1+1,0.000000001,,"a; b"\r\nx,-1234567890.125,1000000000000000000000,\r\ny,-0.000000000015,0,\r\n`,
    );
  });

  it('goes on to the end of the list, by cursor or offset, unless the request chooses a page', async () => {
    const page = (ids: string[], more: object): EndpointResponse => ({
      status: 200,
      body: { things: ids.map((id) => ({ id })), count: ids.length, offset: 0, ...more },
    });
    const asked: object[] = [];
    const first = page(['a'], { has_more: true, next_cursor: 'two' });
    const rest = [page(['b', 'c'], { has_more: true, offset: 1 }), page(['d'], { has_more: false })];
    const whole = csvListAnswer(LIST, first, async (position) => {
      asked.push(position);
      return rest.shift() as EndpointResponse;
    });
    const ids = (csv: string) => parse(csv, { columns: true }).map((row: Json) => row.id);
    expect(ids(await text(whole.content?.data as Readable))).toEqual(['a', 'b', 'c', 'd']);
    expect(asked).toEqual([{ cursor: 'two', offset: 0 }, { offset: 3 }]);
    const alone = csvListAnswer(LIST, first, undefined);
    expect(ids(alone.content?.data as string)).toEqual(['a']);
    expect(firstPageQuery({ limit: 100, offset: 0 }, {})).toEqual({
      query: { limit: 1_000, offset: 0 },
      isWhole: true,
    });
    expect(firstPageQuery({ limit: 5 }, { limit: '5' })).toEqual({ query: { limit: 5 }, isWhole: false });
  });

  it('breaks off beyond a hundred thousand rows, so that nobody takes a part for the whole', async () => {
    const page: EndpointResponse = {
      status: 200,
      body: { things: [], has_more: true, next_cursor: 'on', count: 0, offset: 0 },
    };
    const { content } = csvListAnswer(LIST, page, async () => page);
    await expect(text(content?.data as Readable)).rejects.toThrow('more than 100000 rows');
  });
});
