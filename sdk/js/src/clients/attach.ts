import type { Recorder } from '../calls.js';
import type { Labels } from '../labels.js';
import { attachBedrock, isBedrock } from './bedrock.js';
import { attachCohere, isCohere } from './cohere.js';
import { attachGoogle, isGoogle } from './google.js';
import { attachMistral, isMistral } from './mistral.js';
import { attachStainless, isStainless } from './stainless.js';

/** Set on an observed client, so that it is observed once. */
const OBSERVED = Symbol.for('trueup.observed');

/** Finds out which client it is, and observes it in place. @throws Error for a client that is not known. */
export function attach<Client extends object>(client: Client, recorder: Recorder, labels: Labels): Client {
  if (OBSERVED in client) return client;
  const loose = client as Record<string, unknown>;
  if (isStainless(loose)) attachStainless(loose, recorder, labels, attach);
  else if (isGoogle(loose)) attachGoogle(loose, recorder, labels);
  else if (isMistral(loose)) attachMistral(loose, recorder, labels);
  else if (isCohere(loose)) attachCohere(loose, recorder, labels);
  else if (isBedrock(loose)) attachBedrock(loose, recorder, labels);
  else throw new Error(`${client.constructor?.name ?? 'the object'} is none of the known clients`);
  Object.defineProperty(client, OBSERVED, { value: true, enumerable: false });
  return client;
}
