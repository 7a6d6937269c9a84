import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf, bodyOf, type OperationsPlace } from './support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from './support/operations.js';
import { send } from './support/requests.js';

let place: OperationsPlace & { close(): Promise<void> };

beforeAll(async () => {
  place = await startOperationsPlace();
});
afterAll(() => place.close());

describe('the list of operations', () => {
  it.each(Object.keys(OPERATIONS))(
    '%s: its request succeeds for its owner, again and again',
    async (name) => {
      const operation = OPERATIONS[name] as (typeof OPERATIONS)[string];
      const owner = await place.api.addOrganization();
      for (let time = 0; time < 2; time += 1) {
        const request = await operation.request(place, owner);
        const answer = await send(place.api, {
          method: operation.method,
          path: addressOf(operation, request),
          key: owner.adminKey,
          ...bodyOf(request),
        });
        expect(answer.status, String(answer.bytes)).toBe(operation.status);
      }
    },
  );
});
