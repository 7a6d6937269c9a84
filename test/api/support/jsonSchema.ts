/** A JSON Schema (2020-12), as far as the OpenAPI document uses it. */
export interface JsonSchema {
  [keyword: string]: unknown;
}

const KNOWN = new Set([
  '$ref',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'anyOf',
  'oneOf',
  'allOf',
  'propertyNames',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'format',
  'description',
  'title',
  'default',
  'example',
  'examples',
  'id',
  'deprecated',
  'readOnly',
  'contentEncoding',
]);

/**
 * Faults of a value by a schema of an OpenAPI 3.1 document, as sentences; none where it passes. A keyword that is not
 * known here is a fault too, so that no rule is passed over.
 */
export function validateJson(document: object, schema: JsonSchema, value: unknown, place = '$'): string[] {
  const faults: string[] = [];
  const inner = (part: unknown, item: unknown, where: string) =>
    validateJson(document, part as JsonSchema, item, where);
  for (const keyword of Object.keys(schema))
    if (!KNOWN.has(keyword) && !keyword.startsWith('x-'))
      faults.push(`${place}: the keyword ${keyword} is not known`);
  if (typeof schema.$ref === 'string') faults.push(...inner(resolve(document, schema.$ref), value, place));
  if (schema.type !== undefined && ![schema.type].flat().some((type) => isOfType(value, String(type))))
    faults.push(`${place}: ${JSON.stringify(value)} is not ${schema.type}`);
  if (Array.isArray(schema.enum) && !schema.enum.includes(value))
    faults.push(`${place}: ${value} is none of ${schema.enum}`);
  if ('const' in schema && schema.const !== value) faults.push(`${place}: ${value} is not ${schema.const}`);
  for (const part of (schema.allOf as unknown[] | undefined) ?? []) faults.push(...inner(part, value, place));
  const choices = (schema.anyOf ?? schema.oneOf) as unknown[] | undefined;
  if (choices && !choices.some((part) => inner(part, value, place).length === 0))
    faults.push(`${place}: fits none of the choices`);
  if (typeof value === 'number') faults.push(...numberFaults(schema, value, place));
  if (typeof value === 'string') faults.push(...textFaults(schema, value, place));
  if (Array.isArray(value)) {
    if (schema.items)
      for (const [index, item] of value.entries())
        faults.push(...inner(schema.items, item, `${place}[${index}]`));
    if (value.length < Number(schema.minItems ?? 0) || value.length > Number(schema.maxItems ?? Infinity))
      faults.push(`${place}: wrong number of items`);
  } else if (typeof value === 'object' && value !== null)
    faults.push(...objectFaults(document, schema, value, place));
  return faults;
}

function resolve(document: object, reference: string): unknown {
  let found: unknown = document;
  for (const step of reference.replace(/^#\//, '').split('/'))
    found = (found as Record<string, unknown> | undefined)?.[step];
  if (found === undefined) throw new Error(`nothing is at ${reference}`);
  return found;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function numberFaults(schema: JsonSchema, value: number, place: string): string[] {
  const outside =
    value < Number(schema.minimum ?? -Infinity) ||
    value > Number(schema.maximum ?? Infinity) ||
    value <= Number(schema.exclusiveMinimum ?? -Infinity) ||
    value >= Number(schema.exclusiveMaximum ?? Infinity);
  return outside ? [`${place}: ${value} lies out of range`] : [];
}

function textFaults(schema: JsonSchema, value: string, place: string): string[] {
  const isWrong =
    value.length < Number(schema.minLength ?? 0) ||
    value.length > Number(schema.maxLength ?? Infinity) ||
    (typeof schema.pattern === 'string' && !new RegExp(schema.pattern, 'u').test(value));
  return isWrong ? [`${place}: "${value.slice(0, 80)}" has the wrong form`] : [];
}

function objectFaults(document: object, schema: JsonSchema, value: object, place: string): string[] {
  const faults: string[] = [];
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  for (const name of (schema.required as string[] | undefined) ?? [])
    if (!Object.hasOwn(value, name)) faults.push(`${place}: ${name} is missing`);
  for (const [name, item] of Object.entries(value)) {
    const own = properties[name];
    if (own) faults.push(...validateJson(document, own, item, `${place}.${name}`));
    else if (schema.additionalProperties === false) faults.push(`${place}: ${name} is not declared`);
    else if (typeof schema.additionalProperties === 'object' && schema.additionalProperties !== null)
      faults.push(
        ...validateJson(document, schema.additionalProperties as JsonSchema, item, `${place}.${name}`),
      );
  }
  return faults;
}
