/** The structure that the requests of OTLP share: items of scopes of resources (opentelemetry-proto). Pure. */
import { hash } from 'node:crypto';
import { DomainError, type FieldIssue } from '../errors.js';
import { type CallProcess, LABEL_CHARS_MAX } from './event.js';
import { readAnyValue, stripText } from './jsonValues.js';
import { SpanAttributes } from './spanAttributes.js';

/** Names of the lists in a request of one signal. */
export interface GroupNames {
  resources: string;
  scopes: string;
  items: string;
}

/** A scope of a service, with the attributes that apply to all its items. */
export interface OtlpSource {
  serviceName: string;
  scopeName: string;
  scopeVersion: string;
  outer: SpanAttributes;
}

/** Number of items in a request, so that a request with too many is refused before it is mapped. */
export function countItems(request: unknown, names: GroupNames): number {
  let count = 0;
  for (const resource of looseList(request, names.resources))
    for (const scope of looseList(resource, names.scopes)) count += looseList(scope, names.items).length;
  return count;
}

/** The larger of the numbers of resources and scopes in a request; each costs as much as a small item. */
export function countGroups(request: unknown, names: GroupNames): number {
  const resources = looseList(request, names.resources);
  let scopes = 0;
  for (const resource of resources) scopes += looseList(resource, names.scopes).length;
  return Math.max(resources.length, scopes);
}

function looseList(holder: unknown, field: string): readonly unknown[] {
  const list = (holder as Record<string, unknown> | null | undefined)?.[field];
  return Array.isArray(list) ? list : [];
}

/** The items of one scope, and the resource and position of its entry in the request. */
export interface OtlpGroup {
  source: OtlpSource;
  items: readonly unknown[];
  entry: OtlpEntry;
}

/** An entry of a request: a resource and its scopes. */
export interface OtlpEntry {
  resource: unknown;
  scopes: number;
}

/** The items by source. Checks the whole structure before the first item is mapped. @throws DomainError invalid_body. */
export function groupsOf(request: unknown, names: GroupNames): OtlpGroup[] {
  const issues = new Issues();
  const groups: OtlpGroup[] = [];
  if (!isObject(request)) issues.add('body', `must be an object with ${names.resources}`);
  for (const [at, resource] of listAt(request, names.resources, '', issues)) {
    const resourceAttributes = attributesOf(resource, 'resource', at, undefined, issues);
    const scopes = listAt(resource, names.scopes, `${at}.`, issues);
    const entry = { resource: resource.resource, scopes: scopes.length };
    for (const [scopeAt, scope] of scopes) {
      const outer = attributesOf(scope, 'scope', scopeAt, resourceAttributes, issues);
      groups.push({
        source: sourceOf(scope, outer),
        items: itemsAt(scope, names.items, `${scopeAt}.`, issues),
        entry,
      });
    }
  }
  issues.throwAny();
  return groups;
}

/** Maximum reported faults of a body; a body with so many has another format altogether. */
const ISSUES_MAX = 20;

class Issues {
  readonly #found: FieldIssue[] = [];

  /** @throws DomainError invalid_body at the maximum number of faults. */
  add(field: string, message: string): void {
    this.#found.push({ in: 'body', field, message });
    if (this.#found.length >= ISSUES_MAX) this.throwAny();
  }

  /** @throws DomainError invalid_body if there is any fault. */
  throwAny(): void {
    const [first] = this.#found;
    if (first === undefined) return;
    throw new DomainError('invalid_body', `${first.field}: ${first.message}`, { issues: this.#found });
  }
}

function sourceOf(scoped: unknown, outer: SpanAttributes): OtlpSource {
  const scope = (isObject(scoped) ? scoped.scope : undefined) as
    | { name?: unknown; version?: unknown }
    | undefined;
  return {
    serviceName: shortText(outer.label('serviceName')),
    scopeName: shortText(scope?.name),
    scopeVersion: shortText(scope?.version),
    outer,
  };
}

/** Names of services and scopes are only labels of ingest health, so long ones are cut instead of refused. */
function shortText(value: unknown): string {
  return typeof value === 'string' ? stripText(value).slice(0, LABEL_CHARS_MAX) : '';
}

function attributesOf(
  holder: unknown,
  field: 'resource' | 'scope',
  at: string,
  outer: SpanAttributes | undefined,
  issues: Issues,
): SpanAttributes {
  const part = isObject(holder) ? holder[field] : undefined;
  if (part !== undefined && part !== null && !isObject(part))
    issues.add(`${at}.${field}`, 'must be an object');
  const pairs = isObject(part) ? part.attributes : undefined;
  if (pairs !== undefined && pairs !== null && !Array.isArray(pairs)) {
    issues.add(`${at}.${field}.attributes`, 'must be a list of key and value');
    return new SpanAttributes(undefined, outer);
  }
  return new SpanAttributes(pairs, outer);
}

/** The objects of a list with their paths; any other item is a fault of the body. */
function listAt(
  holder: unknown,
  field: string,
  prefix: string,
  issues: Issues,
): [string, Record<string, unknown>][] {
  const items: [string, Record<string, unknown>][] = [];
  itemsAt(holder, field, prefix, issues).forEach((item, index) => {
    const path = `${prefix}${field}[${index}]`;
    if (isObject(item)) items.push([path, item]);
    else issues.add(path, 'must be an object');
  });
  return items;
}

/** The items of a list; absent: no items; any other value is a fault of the body. */
function itemsAt(holder: unknown, field: string, prefix: string, issues: Issues): readonly unknown[] {
  const list = isObject(holder) ? holder[field] : undefined;
  if (list === undefined || list === null) return [];
  if (Array.isArray(list)) return list;
  issues.add(`${prefix}${field}`, 'must be a list');
  return [];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The process that an OTLP resource describes. Two resources are of one process only if all their attributes are equal
 * and identify a process: OpenTelemetry's `service.instance.id`, else a host and a process id on it.
 */

const INSTANCE = 'service.instance.id';
const PROCESS = 'process.pid';
const HOSTS = ['host.id', 'host.name', 'container.id', 'k8s.pod.uid'];

/**
 * The process of a resource in a request; null: the resource identifies no process and has spans of one scope only, so
 * no call of it can be paired. Spans of a resource that identifies no process are of one process within its entry of
 * the request, since an exporter describes itself; `firstSpan` distinguishes that entry from all others.
 */
export function processOf(resource: unknown, scopes: number, firstSpan: unknown): CallProcess | null {
  const attributes = valuesOf(resource);
  const isIdentified =
    isPresent(attributes.get(INSTANCE)) ||
    (isPresent(attributes.get(PROCESS)) && HOSTS.some((name) => isPresent(attributes.get(name))));
  if (!isIdentified && scopes < 2) return null;
  const sorted = [...attributes].sort(([one], [other]) => (one < other ? -1 : 1));
  const entry = isIdentified ? [] : [idsOf(firstSpan)];
  const text = JSON.stringify([sorted, ...entry], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return { hash: numberOf(text), isIdentified };
}

function valuesOf(resource: unknown): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const pairs = isObject(resource) ? resource.attributes : undefined;
  if (!Array.isArray(pairs)) return found;
  for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[])
    if (typeof pair?.key === 'string') found.set(stripText(pair.key), readAnyValue(pair.value));
  return found;
}

const isPresent = (value: unknown) => value !== undefined && value !== '';

function idsOf(span: unknown): unknown {
  return isObject(span) ? [span.traceId, span.spanId] : null;
}

/** The first 64 bits of the text's sha256. */
function numberOf(text: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${hash('sha256', text, 'hex').slice(0, 16)}`));
}
