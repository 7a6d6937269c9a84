import { z } from 'zod';
import { createSchema } from 'zod-openapi';
import { claimEndpoints } from '../claims/claims/endpoints.js';
import { type Endpoint, limitClassOf } from '../endpoint.js';
import { eventEndpoints } from '../events/events/endpoints.js';
import { pricingEndpoints } from '../pricing/table/endpoints.js';
import { findingEndpoints } from '../reconciliation/findings/endpoints.js';
import { statementEndpoints } from '../reconciliation/statement/endpoints.js';
import { usageEndpoints } from '../usage/usage/endpoints.js';

/** A read of the API under the name by which a model calls it. */
export interface Tool {
  name: string;
  title: string;
  /** For the model: content and unit of the answer, and when to use it. */
  description: string;
  endpoint: Endpoint;
  /** Arguments that the tool requires although the endpoint does not. */
  required: readonly string[];
}

const MONEY = 'Amounts are US dollars.';
const PAGES =
  'One page at a time: while has_more is true, call again with cursor set to next_cursor of the last answer.';

/** Every tool; each one answers exactly as its endpoint does for the same key. */
export const TOOLS: readonly Tool[] = [
  tool('spend_summary', 'Spend and tokens', usageEndpoints, 'getUsageSummary', {
    description: `What calls cost in a window of time and how many tokens they used, in total and by one dimension (group_by), the most expensive group first. ${MONEY} The default is the last 30 days by model. These are the costs of recorded calls, not of bills: get_statement has the bills.`,
  }),
  tool('list_findings', 'Findings on bills', findingEndpoints, 'listFindings', {
    description: `Differences between bills and recorded calls or agreed prices, with kind, provider, model, days and confidence, the largest amount first. ${MONEY} direction=overcharge has what the provider charged too much; from and to select days (for last month its first and its last day). ${PAGES}`,
  }),
  tool('get_finding', 'One finding', findingEndpoints, 'getFinding', {
    description: `One finding by its id (fnd_…) with its days, the computation of its amount and the evidence. ${MONEY}`,
  }),
  tool('list_claims', 'Claims', claimEndpoints, 'listClaims', {
    description: `Claims for money back from providers, with status, amount and deadlines, the newest first. ${MONEY} ${PAGES}`,
  }),
  tool('get_claim', 'One claim', claimEndpoints, 'getClaim', {
    description: `One claim by its id (clm_…) with its history and its evidence. ${MONEY}`,
  }),
  tool('get_statement', 'Statement of a month', statementEndpoints, 'getStatement', {
    description: `What a month cost by the providers' bills, by account, by provider and in total: list price, discounts, billed usage, credits and tax, and how much of the billed usage recorded calls confirm. ${MONEY} period is a UTC month such as 2026-10.`,
  }),
  tool('list_events', 'Calls', eventEndpoints, 'listEvents', {
    description: `Single calls, the newest first: model, tokens by class, cost in US dollars, duration in milliseconds, team, feature, user and session. ${PAGES} Use spend_summary for totals; this list is for looking at calls one by one.`,
  }),
  tool('price_of_model', 'Price of a model', pricingEndpoints, 'listPrices', {
    description:
      'List prices of a model in US dollars for a million tokens, by token class, with the dates from which they hold, tiers and sources. An unknown rate is null, which is not free. at selects the price of one moment.',
    required: ['model'],
  }),
];

/**
 * @throws TypeError for an endpoint that is no read, or that limits count otherwise than the request which calls the
 * tool, so that the service does not start.
 */
function tool(
  name: string,
  title: string,
  endpoints: readonly Endpoint[],
  operationId: string,
  { description, required = [] }: { description: string; required?: readonly string[] },
): Tool {
  const endpoint = endpoints.find((one) => one.operationId === operationId);
  if (endpoint?.method !== 'get' || limitClassOf(endpoint) !== 'read')
    throw new TypeError(`the tool ${name} is no read: ${operationId}`);
  return { name, title, description, endpoint, required };
}

export function findTool(name: string): Tool | undefined {
  return TOOLS.find((one) => one.name === name);
}

type JsonSchema = Record<string, unknown>;

/** A tool as `tools/list` shows it. */
export interface ListedTool {
  name: string;
  title: string;
  description: string;
  inputSchema: { type: 'object'; [name: string]: unknown };
  outputSchema: { type: 'object'; [name: string]: unknown };
  annotations: { readOnlyHint: true; destructiveHint: false; idempotentHint: true; openWorldHint: false };
}

let listed: readonly ListedTool[] | undefined;

/** All tools with their schemas, made from the schemas that validate requests and answers of the API. */
export function listTools(): readonly ListedTool[] {
  listed ??= TOOLS.map((one) => ({
    name: one.name,
    title: one.title,
    description: one.description,
    inputSchema: inputSchemaOf(one),
    outputSchema: outputSchemaOf(one),
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  }));
  return listed;
}

/** The schemas of a tool's arguments: path parameters and query, without the format, which is always JSON. */
export function argumentsOf({ endpoint }: Tool): { params: z.ZodObject; query: z.ZodObject } {
  const shapeOf = (schema: z.ZodType | undefined) => (schema instanceof z.ZodObject ? schema.shape : {});
  const { format, ...query } = shapeOf(endpoint.query) as Record<string, z.ZodType>;
  return { params: z.object(shapeOf(endpoint.params)), query: z.object(query) };
}

function inputSchemaOf(one: Tool): ListedTool['inputSchema'] {
  const { params, query } = argumentsOf(one);
  const schema = jsonSchemaOf(params.extend(query.shape), 'input');
  const required = [...new Set([...((schema.required as string[] | undefined) ?? []), ...one.required])];
  return {
    ...schema,
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

function outputSchemaOf({ endpoint }: Tool): ListedTool['outputSchema'] {
  return { ...jsonSchemaOf(endpoint.responses[200]?.schema as z.ZodType, 'output'), type: 'object' };
}

/** A schema as the OpenAPI document shows it, with its named parts inside. */
function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { schema: whole, components } = createSchema(schema, { io, openapiVersion: '3.1.0' });
  const parts = Object.keys(components).length > 0 ? { $defs: components } : {};
  return JSON.parse(
    JSON.stringify({ ...whole, ...parts }).replaceAll('"#/components/schemas/', '"#/$defs/'),
  ) as JsonSchema;
}
