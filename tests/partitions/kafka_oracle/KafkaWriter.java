import java.io.File;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Writes a partition's folder with Kafka's own log: plain, compressed, idempotent and
 * transactional batches over several segments and leader epochs. Closed in order, or left as a kill
 * leaves it. Prints its ends. */
public class KafkaWriter {
    public static void main(String[] args) throws Exception {
        File folder = new File(args[0]);
        folder.mkdirs();
        Properties settings = new Properties();
        settings.put("internal.segment.bytes", "4000");
        settings.put("index.interval.bytes", "300");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
            folder, new LogConfig(settings), 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM,
            Integer.MAX_VALUE, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000,
            new LogDirFailureChannel(1), true, Optional.empty());
        CompressionType[] codecs = CompressionType.values();
        long now = System.currentTimeMillis();
        for (int number = 0; number < 200; number++) {
            int epoch = number / 50;
            Compression codec = Compression.of(codecs[number % codecs.length]).build();
            SimpleRecord[] records = new SimpleRecord[1 + number % 4];
            for (int i = 0; i < records.length; i++) {
                byte[] value = ("value " + number + "/" + i + " ".repeat(number % 30)).getBytes();
                records[i] = new SimpleRecord(now + number, ("key " + i).getBytes(), value);
            }
            MemoryRecords batch = switch (number % 5) {
                case 1 -> MemoryRecords.withIdempotentRecords(codec, 7, (short) 0, number / 5, records[0]);
                case 2 -> MemoryRecords.withTransactionalRecords(codec, 8, (short) 3, number / 5, records[0]);
                case 3 -> MemoryRecords.withEndTransactionMarker(
                    now + number, 8, (short) 3,
                    new EndTransactionMarker(
                        number % 2 == 0 ? ControlRecordType.COMMIT : ControlRecordType.ABORT, 5));
                default -> MemoryRecords.withRecords(codec, records);
            };
            AppendOrigin origin = number % 5 == 3 ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT;
            VerificationGuard guard = number % 5 == 2
                ? log.maybeStartTransactionVerification(8, number / 5, (short) 3, true)
                : VerificationGuard.SENTINEL;
            log.appendAsLeader(
                batch, epoch, origin, org.apache.kafka.server.common.RequestLocal.noCaching(), guard);
        }
        System.out.println("end " + log.logEndOffset());
        System.out.println("segments " + log.logSegments().size());
        if (args[1].equals("close")) {
            log.close();
        } else {
            log.flush(false);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
