import { recordNotice } from '../../../../db/queries/notices.js';
import type { TenancyCase } from './tenancyCase.js';

/** The alerts feed, and what puts something into it. */
export const ALERT_CASES: Record<string, TenancyCase> = {
  recordNotice: (db, { marker, connection }) =>
    recordNotice(db, {
      code: 'connection_broken',
      key: `connection_broken:${marker}`,
      subject: { type: 'connection', id: connection.id },
      severity: 'high',
      message: marker,
      details: {},
      provider: null,
    }),
};
