import { z } from 'zod';
import type { ReportSchedule } from '../../../db/reports/reportSchedules.js';
import { isTimeZone } from '../../../domain/installation/settings.js';
import { isoFromMicros } from '../../../domain/period.js';
import { REPORT_SECTIONS } from '../../../domain/reports/report.js';
import { CADENCES, DELIVERIES_MAX, DELIVERY_TYPES, type Delivery } from '../../../domain/reports/schedule.js';
import { isMailAddress } from '../../../domain/webhooks/mailAddress.js';
import { nextOf } from '../../../usecases/reports/reportSchedules.js';
import { REPORTS_PATH, sectionsField } from '../reports/wire.js';

export const SCHEDULES_PATH = `${REPORTS_PATH}/schedules`;
export const SCHEDULE_PATH = `${SCHEDULES_PATH}/{cadence}`;

export const scheduleParams = z.object({
  cadence: z.enum(CADENCES, { error: `must be one of ${CADENCES.join(', ')}` }),
});

/** Printable ASCII without quotes, brackets and separators: an address that needs no quoting in a header of a mail. */
const ADDRESS = /^[\x21\x23-\x27\x2a\x2b\x2d-\x39\x3d\x3f\x41-\x5a\x5e-\x7e]{1,64}@[0-9A-Za-z.-]{1,189}$/;
const ADDRESS_RULE = 'must be an e-mail address';

const deliveryField = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('webhook') }),
    z.strictObject({
      type: z.literal('email'),
      to: z
        .string({ error: ADDRESS_RULE })
        .regex(ADDRESS, { error: ADDRESS_RULE })
        .refine(isMailAddress, { error: ADDRESS_RULE }),
    }),
  ],
  { error: 'must have a type: webhook, or email with to' },
);

export const scheduleBody = z
  .strictObject({
    sections: sectionsField.nullish(),
    time_zone: z
      .string()
      .refine(isTimeZone, { error: 'must be a name of the IANA time zone database, such as Europe/Berlin' })
      .nullish()
      .meta({ description: 'That of the organization’s settings where absent' }),
    deliveries: z
      .array(deliveryField)
      .max(DELIVERIES_MAX, { error: `must have at most ${DELIVERIES_MAX} items` })
      .default([])
      .meta({ description: 'Beside the list of reports: webhook report.generated, or mail to an address' }),
  })
  .meta({ id: 'ReportScheduleRequest' });

export const scheduleSchema = z
  .strictObject({
    cadence: z.enum(CADENCES),
    sections: z.array(z.enum(REPORT_SECTIONS)),
    time_zone: z.string(),
    deliveries: z.array(
      z.strictObject({ id: z.string(), type: z.enum(DELIVERY_TYPES), to: z.string().optional() }),
    ),
    next: z
      .strictObject({ period_from: z.string(), period_to: z.string(), due_at: z.string() })
      .meta({ description: 'The next report: its days, and the time from which it is made' }),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'ReportSchedule' });

export const listSchedulesResponse = z
  .strictObject({ schedules: z.array(scheduleSchema), count: z.int() })
  .meta({ id: 'ReportSchedules' });

export function presentSchedule(schedule: ReportSchedule): z.output<typeof scheduleSchema> {
  const { period, dueMicros } = nextOf(schedule);
  return {
    cadence: schedule.cadence,
    sections: schedule.sections,
    time_zone: schedule.timeZone,
    deliveries: schedule.deliveries.map(presentDelivery),
    next: { period_from: period.fromDay, period_to: period.toDay, due_at: isoFromMicros(dueMicros) },
    created_at: isoFromMicros(schedule.createdAtMicros),
    updated_at: isoFromMicros(schedule.updatedAtMicros),
  };
}

const presentDelivery = (delivery: Delivery) =>
  delivery.type === 'email'
    ? { id: delivery.id, type: delivery.type, to: delivery.to }
    : { id: delivery.id, type: delivery.type };
