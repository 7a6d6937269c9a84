import type { Recorder } from '../calls.js';
import type { Labels } from '../labels.js';
import { attachBedrock, isBedrock } from './bedrock.js';
import { attachCohere, isCohere } from './cohere.js';
import { attachGoogle, isGoogle } from './google.js';
import { attachMistral, isMistral } from './mistral.js';
import { attachStainless, isStainless } from './stainless.js';

/** Set on an observed client, so that it is observed once. */
const OBSERVED = Symbol.for('trueup.observed');
const SILENT = 'silent';

/** Finds out which client it is, and observes it in place. @throws Error for a client that is not known. */
export function attach<Client extends object>(client: Client, recorder: Recorder, labels: Labels): Client {
  const before = (client as { [OBSERVED]?: unknown })[OBSERVED];
  // A client that a connection without an address observes may be observed by another one later.
  if (before !== undefined && (before !== SILENT || recorder.isSilent)) return client;
  const loose = client as Record<string, unknown>;
  if (isStainless(loose)) attachStainless(loose, recorder, labels, attach);
  else if (isGoogle(loose)) attachGoogle(loose, recorder, labels);
  else if (isMistral(loose)) attachMistral(loose, recorder, labels);
  else if (isCohere(loose)) attachCohere(loose, recorder, labels);
  else if (isBedrock(loose)) attachBedrock(loose, recorder, labels);
  else throw new Error(`${client.constructor?.name ?? 'the object'} is none of the known clients`);
  Object.defineProperty(client, OBSERVED, {
    configurable: true,
    enumerable: false,
    value: recorder.isSilent ? SILENT : true,
  });
  return client;
}
