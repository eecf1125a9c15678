import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Apache Kafka's own client: topic, every codec, a group that commits. Prints "ok" at the end. */
public class RoundTrip {
  static final int RECORDS_PER_CODEC = 200;
  static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

  public static void main(String[] arguments) throws Exception {
    Properties common = new Properties();
    common.put("bootstrap.servers", arguments[0]);
    String topic = arguments[1];
    String group = arguments[2];
    common.put("group.protocol", arguments[3]);
    try (Admin admin = Admin.create(common)) {
      check(admin.describeCluster().nodes().get().size() == 3, "three nodes");
      admin.createTopics(List.of(new NewTopic(topic, 3, (short) 3))).all().get();
    }
    Set<String> sent = new TreeSet<>();
    for (String codec : CODECS) {
      produce(common, topic, codec, sent);
    }
    check(consume(common, topic, group, sent.size()).equals(sent), "every record once");
    try (Admin admin = Admin.create(common)) {
      Map<TopicPartition, ?> committed =
          admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
      check(committed.size() == 3, "three partitions committed: " + committed);
      admin.deleteTopics(List.of(topic)).all().get();
    }
    System.out.println("ok");
  }

  static void produce(Properties common, String topic, String codec, Set<String> sent)
      throws Exception {
    Properties settings = new Properties();
    settings.putAll(common);
    settings.put("acks", "all");
    settings.put("compression.type", codec);
    StringSerializer text = new StringSerializer();
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
      for (int i = 0; i < RECORDS_PER_CODEC; i++) {
        String value = codec + "-" + i;
        producer.send(new ProducerRecord<>(topic, value, value));
        sent.add(value);
      }
      producer.flush();
    }
  }

  static Set<String> consume(Properties common, String topic, String group, int count) {
    Properties settings = new Properties();
    settings.putAll(common);
    settings.put("group.id", group);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    StringDeserializer text = new StringDeserializer();
    Set<String> read = new TreeSet<>();
    int records = 0;
    long deadline = System.nanoTime() + 120_000_000_000L;
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
      consumer.subscribe(List.of(topic));
      while (records < count && System.nanoTime() < deadline) {
        for (var record : consumer.poll(Duration.ofMillis(500))) {
          read.add(record.value());
          records++;
        }
      }
      consumer.commitSync();
    }
    check(records == count, records + " of " + count + " records");
    return read;
  }

  static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }
}
