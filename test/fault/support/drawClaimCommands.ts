import fc from 'fast-check';
import { Ask, type Command, type Disturbance, Engine, PassDeadline, Race, Repeat } from './claimCommands.js';
import { type ClaimRequest, DENIALS, STATUSES, saying } from './claimModel.js';
import type { Caller } from './claimSystem.js';

const claimAt = (claims: number) => fc.nat(claims - 1);
// Claims that have ended have nothing more to show: most moves lead elsewhere.
const aStatus = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('provider_acknowledged', 'under_review', 'credit_approved', 'escalated'),
  },
  { weight: 2, arbitrary: fc.constantFrom(...STATUSES) },
);
const aKind = fc.constantFrom(...Object.keys(DENIALS));
const aTicket = fc.record({ external_ticket_id: fc.constantFrom('T-1', 'T-22', null) }, { requiredKeys: [] });
const cents = fc.constantFrom(1, 1_000, 12_344, 12_345, 99_999);
const wellSaid = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(aStatus, aTicket).map(([status, ticket]) => saying(status, ticket)) },
  {
    weight: 2,
    arbitrary: fc.record({ status: fc.constantFrom('credit_issued', 'partial'), credit_issued_cents: cents }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      status: fc.constant('denied'),
      denial_reason: fc.constant('by contract'),
      violation_type: aKind,
    }),
  },
);
const anything = fc.record(
  {
    status: fc.constantFrom(...STATUSES, 'closed', '', 7, null),
    denial_reason: fc.constantFrom('no', ' ', 7, null, 'x'.repeat(4_001)),
    violation_type: fc.constantFrom('other', 'unexplained', 'overcharge', 1, null),
    credit_issued_cents: fc.constantFrom(1, 0, -5, 10.5, '100', null, true),
    external_ticket_id: fc.constantFrom('T-3', '', 'x'.repeat(257), 5, null),
    urgency: fc.constant('high'),
  },
  { requiredKeys: [] },
);
const malformed = fc.constantFrom<unknown>([], 'under_review', 5, null, [{ status: 'escalated' }]);
const aRequest = fc.oneof(
  { weight: 4, arbitrary: fc.constant<ClaimRequest>({ call: 'submit' }) },
  { weight: 9, arbitrary: wellSaid.map((body): ClaimRequest => ({ call: 'patch', body })) },
  { weight: 3, arbitrary: anything.map((body): ClaimRequest => ({ call: 'patch', body })) },
  { weight: 1, arbitrary: malformed.map((body): ClaimRequest => ({ call: 'patch', body })) },
  { weight: 1, arbitrary: fc.constant<ClaimRequest>({ call: 'discard' }) },
);
const aCaller = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Caller>('admin') },
  { weight: 1, arbitrary: fc.constantFrom<Caller>('member', 'nobody') },
);

/** All commands on this many claims. */
export function claimCommands(claims: number): fc.Arbitrary<Command>[] {
  const ask = fc.uniqueArray(
    fc
      .record({ claim: claimAt(claims), request: aRequest, caller: aCaller, isKeyed: fc.boolean() })
      // Who may discard is another question.
      .map((one) => (one.request.call === 'discard' ? { ...one, caller: 'admin' as const } : one)),
    { minLength: 1, maxLength: claims, selector: ({ claim }) => claim, size: 'max' },
  );
  const disturbance = fc.record({
    how: fc.constantFrom<Disturbance>('cut', 'silence', 'stall', 'kill'),
    afterMs: fc.nat(40),
  });
  const race = fc.tuple(
    claimAt(claims),
    fc.array(
      aRequest.filter(({ call }) => call !== 'discard'),
      { minLength: 2, maxLength: 4 },
    ),
  );
  return [
    fc.oneof(
      { weight: 10, arbitrary: ask.map((asked): Command => new Ask(asked, undefined)) },
      {
        weight: 3,
        arbitrary: fc.tuple(ask, disturbance).map(([asked, how]): Command => new Ask(asked, how)),
      },
      { weight: 2, arbitrary: race.map(([claim, requests]): Command => new Race(claim, requests)) },
      {
        weight: 4,
        arbitrary: fc
          .tuple(
            fc.nat(20),
            fc.constantFrom('as it was' as const, 'forgotten' as const, 'with other words' as const),
          )
          .map(([which, how]): Command => new Repeat(which, how)),
      },
      { weight: 3, arbitrary: claimAt(claims).map((claim): Command => new PassDeadline(claim)) },
      {
        weight: 5,
        arbitrary: fc
          .constantFrom(
            'cut' as const,
            'silence' as const,
            'stall' as const,
            'kill' as const,
            'mend' as const,
            'mend' as const,
            'work' as const,
            'work' as const,
          )
          .map((how): Command => new Engine(how)),
      },
    ),
  ];
}
